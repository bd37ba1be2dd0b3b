// Max pooling of one to three dimensions, by sliding or adaptive windows, and the operators on its
// indices: its gradient, the gradient of that, and unpooling. A thread searches a window.
//
// In the gradient an element may have been the largest of several windows. Their gradients are
// added in the windows' order. Where several values are unpooled to one position, the last one
// stays.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/_max_pool_backward.h"
#include "aten/ops/_max_pool_gather.h"
#include "aten/ops/_max_unpool.h"
#include "aten/ops/adaptive_max_pool1d.h"
#include "aten/ops/adaptive_max_pool2d.h"
#include "aten/ops/adaptive_max_pool3d.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/convolution/cuda/pool_windows.cuh"
#include "aten/ops/indexing/cuda/deterministic_scatter.cuh"
#include "aten/ops/max_pool1d_with_indices.h"
#include "aten/ops/max_pool2d_with_indices.h"
#include "aten/ops/max_pool3d_with_indices.h"

namespace treadle::cuda {
namespace {

// NaN is the largest, the last of them; of equal numbers the first is taken.
template <class T>
__global__ void max_pool_kernel(const T* x, PoolWindows w, T* values, int64_t* indices) {
  const int64_t size = w.out_size();
  for_each_element(w.planes * size, [=](int64_t i) {
    const T* const plane = x + i / size * w.in_size();
    const int64_t place = i % size;
    const Range zs = w.of_window(0, place / (w.out[1] * w.out[2])),
                ys = w.of_window(1, place / w.out[2] % w.out[1]),
                xs = w.of_window(2, place % w.out[2]);
    int64_t best = -1;
    Computed<T> top{};
    for (int64_t z = zs.begin; z < zs.end; z += w.gap[0]) {
      for (int64_t y = ys.begin; y < ys.end; y += w.gap[1]) {
        for (int64_t k = xs.begin; k < xs.end; k += w.gap[2]) {
          const int64_t at = (z * w.in[1] + y) * w.in[2] + k;
          const Computed<T> v = widened(plane[at]);
          if (best < 0 || v != v || v > top) {
            top = v;
            best = at;
          }
        }
      }
    }
    values[i] = narrowed<T>(top);
    indices[i] = best;
  });
}

template <class T>
void forward(const Tensor& self, const PoolWindows& w, const Tensor& out, const Tensor& indices) {
  const Tensor x = aten::contiguous(self);
  const Place place(out);
  max_pool_kernel<T><<<blocks_for(out.numel()), kBlock, 0, place.stream>>>(
      x.data_as<T>(), w, out.data_as<T>(), indices.data_as<int64_t>());
  check_launched();
}
template <class T>
void max_pool_cuda(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                   IntList dilation, bool, const Tensor& out, const Tensor& indices) {
  if (out.numel() == 0) return;
  forward<T>(self, PoolWindows(self.sizes(), out.sizes(), kernel_size, stride, padding, dilation),
             out, indices);
}
template <class T>
void adaptive_max_pool_cuda(const Tensor& self, IntList output_size, const Tensor& out,
                            const Tensor& indices) {
  if (out.numel() == 0) return;
  forward<T>(self, PoolWindows(self.sizes(), out.sizes(), output_size.size()), out, indices);
}

__device__ const char kBackward[] = "_max_pool_backward";
__device__ const char kGather[] = "_max_pool_gather";
__device__ const char kUnpool[] = "_max_unpool";

// The element that was the largest of a window.
struct LargestElements {
  const int64_t* indices;
  int64_t in_size, out_size;
  FaultPlace fault;
  __device__ int64_t operator()(int64_t window) const {
    const int64_t at = indices[window];
    if (at >= 0 && at < in_size) return window / out_size * in_size + at;
    record_fault(fault, kIndexOutOfRange, kBackward, 0, in_size, at);
    return -1;
  }
};
template <class T>
struct AddWindows {
  using Value = Computed<T>;
  const T* grad;
  T* out;
  __device__ Value load(int64_t window, int64_t) const { return widened(grad[window]); }
  __device__ Value join(Value a, Value b) const { return a + b; }
  __device__ void store(int64_t element, int64_t, Value sum, int64_t) const {
    out[element] = narrowed<T>(sum);
  }
};

template <class T>
void max_pool_backward_cuda(const Tensor& grad, const Tensor& indices, IntList input_size,
                            int64_t spatial, const Tensor& out) {
  if (out.numel() == 0) return;
  const Place place(out);
  succeed(cudaMemsetAsync(out.data(), 0, static_cast<size_t>(out.nbytes()), place.stream),
          "filling memory");
  const PoolWindows w(input_size, grad.sizes(), static_cast<size_t>(spatial));
  const Tensor g = aten::contiguous(grad), chosen = aten::contiguous(indices);
  const SortedPairs pairs =
      sorted_entries("max_pool",
                     LargestElements{chosen.data_as<int64_t>(), w.in_size(), w.out_size(),
                                     faults().place(place.device)},
                     grad.numel(), out.numel(), place);
  scatter_fold(pairs, out.numel(), 1, AddWindows<T>{g.data_as<T>(), out.data_as<T>()}, place);
}

template <class T>
__global__ void gather_kernel(const T* grad, const int64_t* indices, int64_t n, int64_t in_size,
                              int64_t out_size, T* out, FaultPlace fault) {
  for_each_element(n, [=](int64_t i) {
    const int64_t at = indices[i];
    if (at < 0 || at >= in_size)
      record_fault(fault, kIndexOutOfRange, kGather, 0, in_size, at);
    else
      out[i] = grad[i / out_size * in_size + at];
  });
}
template <class T>
void max_pool_gather_cuda(const Tensor& grad, const Tensor& indices, int64_t spatial,
                          const Tensor& out) {
  if (out.numel() == 0) return;
  const PoolWindows w(grad.sizes(), indices.sizes(), static_cast<size_t>(spatial));
  const Tensor g = aten::contiguous(grad), chosen = aten::contiguous(indices);
  const Place place(out);
  gather_kernel<T><<<blocks_for(out.numel()), kBlock, 0, place.stream>>>(
      g.data_as<T>(), chosen.data_as<int64_t>(), out.numel(), w.in_size(), w.out_size(),
      out.data_as<T>(), faults().place(place.device));
  check_launched();
}

// last[place] = 1 + the index of the last value that goes there.
__global__ void number_values(const int64_t* indices, int64_t n, int64_t in_size, int64_t out_size,
                              unsigned long long* last, FaultPlace fault) {
  for_each_element(n, [=](int64_t i) {
    const int64_t at = indices[i];
    if (at < 0 || at >= in_size)
      record_fault(fault, kIndexOutOfRange, kUnpool, 0, in_size, at);
    else
      atomicMax(last + i / out_size * in_size + at, static_cast<unsigned long long>(i) + 1);
  });
}
template <class T>
__global__ void unpool_kernel(const T* values, const unsigned long long* last, int64_t n, T* out) {
  for_each_element(
      n, [=](int64_t i) { out[i] = last[i] ? values[last[i] - 1] : narrowed<T>(Computed<T>(0)); });
}
template <class T>
void max_unpool_cuda(const Tensor& self, const Tensor& indices, IntList output_size,
                     const Tensor& out) {
  if (out.numel() == 0) return;
  const PoolWindows w(out.sizes(), self.sizes(), output_size.size());
  const Tensor values = aten::contiguous(self), chosen = aten::contiguous(indices);
  const Tensor last = empty_tensor(out.sizes(), ScalarType::Int64, out.device());
  auto* const numbers = static_cast<unsigned long long*>(last.data());
  const Place place(out);
  succeed(cudaMemsetAsync(numbers, 0, static_cast<size_t>(last.nbytes()), place.stream),
          "filling memory");
  if (self.numel() > 0) {
    number_values<<<blocks_for(self.numel()), kBlock, 0, place.stream>>>(
        chosen.data_as<int64_t>(), self.numel(), w.in_size(), w.out_size(), numbers,
        faults().place(place.device));
    check_launched();
  }
  unpool_kernel<T><<<blocks_for(out.numel()), kBlock, 0, place.stream>>>(
      values.data_as<T>(), numbers, out.numel(), out.data_as<T>());
  check_launched();
}

using Reals = TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double, Half, BFloat16>;
namespace ops = aten::ops;
template <class Op>
Registration register_max_pool() {
  return register_cuda<Op>(
      Reals(), []<class T>() { return &max_pool_cuda<T>; }, "max_pool_cuda");
}
template <class Op>
Registration register_adaptive() {
  return register_cuda<Op>(
      Reals(), []<class T>() { return &adaptive_max_pool_cuda<T>; }, "adaptive_max_pool_cuda");
}
[[maybe_unused]] const Registration sliding_registered[] = {
    register_max_pool<ops::max_pool1d_with_indices>(),
    register_max_pool<ops::max_pool2d_with_indices>(),
    register_max_pool<ops::max_pool3d_with_indices>()};
[[maybe_unused]] const Registration adaptive_registered[] = {
    register_adaptive<ops::adaptive_max_pool1d>(), register_adaptive<ops::adaptive_max_pool2d>(),
    register_adaptive<ops::adaptive_max_pool3d>()};
const auto backward_registered = register_cuda<ops::_max_pool_backward>(
    Floats(), []<class T>() { return &max_pool_backward_cuda<T>; }, "max_pool_backward_cuda");
const auto gather_registered = register_cuda<ops::_max_pool_gather>(
    Floats(), []<class T>() { return &max_pool_gather_cuda<T>; }, "max_pool_gather_cuda");
const auto unpool_registered = register_cuda<ops::_max_unpool>(
    Reals(), []<class T>() { return &max_unpool_cuda<T>; }, "max_unpool_cuda");

}  // namespace
}  // namespace treadle::cuda
