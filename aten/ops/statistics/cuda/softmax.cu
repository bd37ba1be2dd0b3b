// Softmax and its logarithm along a dimension, and their gradients. A block computes one slice, or
// a warp where slices are short. Where slices are adjacent in memory, a thread computes one, so
// that neighbouring threads read neighbouring elements.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/_log_softmax.h"
#include "aten/ops/_log_softmax_backward_data.h"
#include "aten/ops/_softmax.h"
#include "aten/ops/_softmax_backward_data.h"
#include "aten/ops/contiguous.h"

namespace treadle::cuda {
namespace {

// The number of threads for a slice.
constexpr int kThread = 1, kWarp = 32;  // and kBlock

// A slice as one of its threads sees it: its elements are `stride` apart.
template <int threads>
struct Slice {
  int64_t first, stride;
  template <class F>
  __device__ void for_each(int64_t size, F f) const {
    for (int64_t j = threadIdx.x % threads; j < size; j += threads) f(first + j * stride);
  }
  template <class C, class Join>
  __device__ static C joined(C mine, Join join) {
    if constexpr (threads == kBlock) {
      return folded_in_block(mine, join);
    } else {
      for (int step = 1; step < threads; step *= 2) mine = join(mine, of_lane(mine, step));
      return mine;
    }
  }
};

// The slice of this thread; false where there is none left.
template <int threads>
__device__ inline bool find_slice(int64_t outer, int64_t size, int64_t inner, Slice<threads>& s) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * (kBlock / threads) + threadIdx.x / threads;
  if (i >= outer * inner) return false;
  s = {i / inner * size * inner + i % inner, inner};
  return true;
}

template <class T, bool log, int threads>
__global__ void forward_kernel(const T* x, T* y, int64_t outer, int64_t size, int64_t inner) {
  using C = Computed<T>;
  Slice<threads> s;
  if (!find_slice(outer, size, inner, s)) return;
  C most = -INFINITY;
  s.for_each(size, [&](int64_t i) { most = Larger()(most, widened(x[i])); });
  most = s.joined(most, Larger());
  C sum = 0;
  s.for_each(size, [&](int64_t i) { sum += exp(widened(x[i]) - most); });
  sum = s.joined(sum, Plus());
  const C log_sum = ::log(sum);
  s.for_each(size, [&](int64_t i) {
    const C shifted = widened(x[i]) - most;
    y[i] = narrowed<T>(log ? shifted - log_sum : exp(shifted) / sum);
  });
}

template <class T, bool log, int threads>
__global__ void backward_kernel(const T* grad, const T* y, T* out, int64_t outer, int64_t size,
                                int64_t inner) {
  using C = Computed<T>;
  Slice<threads> s;
  if (!find_slice(outer, size, inner, s)) return;
  C sum = 0;
  s.for_each(size,
             [&](int64_t i) { sum += log ? widened(grad[i]) : widened(grad[i]) * widened(y[i]); });
  sum = s.joined(sum, Plus());
  s.for_each(size, [&](int64_t i) {
    const C g = widened(grad[i]), p = widened(y[i]);
    out[i] = narrowed<T>(log ? g - exp(p) * sum : (g - sum) * p);
  });
}

struct Sizes {
  int64_t outer = 1, size = 1, inner = 1;
  Sizes(IntList sizes, int64_t dim) {
    if (sizes.empty()) return;
    const auto at =
        static_cast<size_t>(wrap_dim("softmax", dim, static_cast<int64_t>(sizes.size())));
    for (size_t d = 0; d < sizes.size(); ++d) (d < at ? outer : d == at ? size : inner) *= sizes[d];
  }
  int threads() const {
    if (inner > 1 && outer * inner >= 1024) return kThread;
    return size <= 512 ? kWarp : kBlock;
  }
  unsigned blocks() const {
    const int64_t together = kBlock / threads();
    return block_each((outer * inner + together - 1) / together);
  }
  // The kernel for that many threads.
  template <class F>
  F chosen(F thread, F warp, F block) const {
    return threads() == kThread ? thread : threads() == kWarp ? warp : block;
  }
};

template <class T, bool log>
void forward(const Tensor& self, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor in = aten::contiguous(self);
  const Sizes s(out.sizes(), dim);
  const Place place(out);
  const auto kernel = s.chosen(&forward_kernel<T, log, kThread>, &forward_kernel<T, log, kWarp>,
                               &forward_kernel<T, log, kBlock>);
  kernel<<<s.blocks(), kBlock, 0, place.stream>>>(in.data_as<T>(), out.data_as<T>(), s.outer,
                                                  s.size, s.inner);
  check_launched();
}
template <class T, bool log>
void backward(const Tensor& grad_output, const Tensor& output, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor grad = aten::contiguous(grad_output), y = aten::contiguous(output);
  const Sizes s(out.sizes(), dim);
  const Place place(out);
  const auto kernel = s.chosen(&backward_kernel<T, log, kThread>, &backward_kernel<T, log, kWarp>,
                               &backward_kernel<T, log, kBlock>);
  kernel<<<s.blocks(), kBlock, 0, place.stream>>>(grad.data_as<T>(), y.data_as<T>(),
                                                  out.data_as<T>(), s.outer, s.size, s.inner);
  check_launched();
}

template <class T>
void softmax_cuda(const Tensor& self, int64_t dim, bool /*half_to_float*/, const Tensor& out) {
  forward<T, false>(self, dim, out);
}
template <class T>
void log_softmax_cuda(const Tensor& self, int64_t dim, bool /*half_to_float*/, const Tensor& out) {
  forward<T, true>(self, dim, out);
}
template <class T>
void softmax_backward_cuda(const Tensor& grad_output, const Tensor& output, int64_t dim,
                           ScalarType /*input_dtype*/, const Tensor& out) {
  backward<T, false>(grad_output, output, dim, out);
}
template <class T>
void log_softmax_backward_cuda(const Tensor& grad_output, const Tensor& output, int64_t dim,
                               ScalarType /*input_dtype*/, const Tensor& out) {
  backward<T, true>(grad_output, output, dim, out);
}

const auto softmax_registered = register_cuda<aten::ops::_softmax>(
    Floats(), []<class T>() { return &softmax_cuda<T>; }, "softmax_cuda");
const auto log_softmax_registered = register_cuda<aten::ops::_log_softmax>(
    Floats(), []<class T>() { return &log_softmax_cuda<T>; }, "log_softmax_cuda");
const auto softmax_backward_registered = register_cuda<aten::ops::_softmax_backward_data>(
    Floats(), []<class T>() { return &softmax_backward_cuda<T>; }, "softmax_backward_cuda");
const auto log_softmax_backward_registered = register_cuda<aten::ops::_log_softmax_backward_data>(
    Floats(), []<class T>() { return &log_softmax_backward_cuda<T>; }, "log_softmax_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
