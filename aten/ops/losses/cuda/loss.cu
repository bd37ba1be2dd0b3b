// Negative log likelihood of class indices, and its gradient. One block does the forward pass, in
// the same order each run. A target that is no class is a fault.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/contiguous.h"
#include "aten/ops/nll_loss_backward.h"
#include "aten/ops/nll_loss_forward.h"

namespace treadle::cuda {
namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

// Whether the sample counts. A target that is no class is a fault.
__device__ inline bool counts(int64_t target, int64_t classes, int64_t ignored,
                              const FaultPlace& fault) {
  if (target == ignored) return false;
  if (target >= 0 && target < classes) return true;
  record_fault(fault, kTargetOutOfRange, "nll_loss", ignored, classes, target);
  return false;
}

template <class T>
__global__ void forward_kernel(const T* x, int64_t stride_n, int64_t stride_c,
                               const int64_t* target, const T* weight, int64_t samples,
                               int64_t classes, int64_t reduction, int64_t ignored, T* output,
                               T* total_weight, FaultPlace fault) {
  using C = Computed<T>;
  C sum = 0, total = 0;
  for (int64_t n = threadIdx.x; n < samples; n += kBlock) {
    const int64_t c = target[n];
    C loss = 0;
    if (counts(c, classes, ignored, fault)) {
      const C factor = weight ? widened(weight[c]) : C(1);
      loss = -factor * widened(x[n * stride_n + c * stride_c]);
      total += factor;
    }
    if (reduction == kNone) output[n] = narrowed<T>(loss);
    sum += loss;
  }
  sum = folded_in_block(sum, Plus());
  total = folded_in_block(total, Plus());
  if (threadIdx.x != 0) return;
  *total_weight = narrowed<T>(total);
  if (reduction != kNone) *output = narrowed<T>(reduction == kMean ? sum / total : sum);
}

template <class T>
__global__ void backward_kernel(const T* grad, const int64_t* target, const T* weight,
                                const T* total_weight, int64_t samples, int64_t classes,
                                int64_t reduction, int64_t ignored, T* out, FaultPlace fault) {
  using C = Computed<T>;
  for_each_element(samples, [=](int64_t n) {
    const int64_t c = target[n];
    if (!counts(c, classes, ignored, fault)) return;
    const C scale = reduction == kMean ? C(1) / widened(*total_weight) : C(1);
    const C factor = weight ? widened(weight[c]) : C(1);
    const C from = widened(grad[reduction == kNone ? n : 0]);
    out[n * classes + c] = narrowed<T>(-factor * scale * from);
  });
}

const void* data_of(const Tensor& t) { return t.defined() ? t.data() : nullptr; }

template <class T>
void nll_loss_forward_cuda(const Tensor& self, const Tensor& target, const Tensor& weight,
                           int64_t reduction, int64_t ignore_index, const Tensor& output,
                           const Tensor& total_weight) {
  const Tensor t = aten::contiguous(target),
               w = weight.defined() ? aten::contiguous(weight) : weight;
  const Place place(self);
  forward_kernel<T><<<1, kBlock, 0, place.stream>>>(
      self.data_as<T>(), self.strides()[0], self.strides()[1], t.data_as<int64_t>(),
      static_cast<const T*>(data_of(w)), t.numel(), self.sizes()[1], reduction, ignore_index,
      output.data_as<T>(), total_weight.data_as<T>(), faults().place(place.device));
  check_launched();
}

template <class T>
void nll_loss_backward_cuda(const Tensor& grad, const Tensor& self, const Tensor& target,
                            const Tensor& weight, int64_t reduction, int64_t ignore_index,
                            const Tensor& total_weight, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor t = aten::contiguous(target), g = aten::contiguous(grad);
  const Tensor w = weight.defined() ? aten::contiguous(weight) : weight;
  const Place place(out);
  succeed(cudaMemsetAsync(out.data(), 0, static_cast<size_t>(out.nbytes()), place.stream),
          "filling memory");
  backward_kernel<T><<<blocks_for(t.numel()), kBlock, 0, place.stream>>>(
      g.data_as<T>(), t.data_as<int64_t>(), static_cast<const T*>(data_of(w)),
      total_weight.data_as<T>(), t.numel(), self.sizes()[1], reduction, ignore_index,
      out.data_as<T>(), faults().place(place.device));
  check_launched();
}

const auto forward_registered = register_cuda<aten::ops::nll_loss_forward>(
    Floats(), []<class T>() { return &nll_loss_forward_cuda<T>; }, "nll_loss_forward_cuda");
const auto backward_registered = register_cuda<aten::ops::nll_loss_backward>(
    Floats(), []<class T>() { return &nll_loss_backward_cuda<T>; }, "nll_loss_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
