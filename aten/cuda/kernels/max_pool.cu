// Max pooling of one to three dimensions, and its gradient. A thread looks through a window. In the
// gradient an element may have been the largest of several windows, whose gradients are added up in
// the windows' order.
#include "aten/cuda/kernels/kernel.cuh"
#include "aten/cuda/kernels/meeting_writes.cuh"
#include "aten/ops/_max_pool_backward.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/max_pool1d_with_indices.h"
#include "aten/ops/max_pool2d_with_indices.h"
#include "aten/ops/max_pool3d_with_indices.h"

namespace treadle::cuda {
namespace {

// Over (depth, height, width); dimensions that are not pooled are of size 1, with one window.
struct Windows {
  int64_t planes = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, gap[3] = {1, 1, 1};

  Windows(IntList input, IntList output, size_t spatial) {
    const size_t first = input.size() - spatial;
    for (size_t d = 0; d < first; ++d) planes *= input[d];
    for (size_t d = 0; d < spatial; ++d) {
      in[3 - spatial + d] = input[first + d];
      out[3 - spatial + d] = output[first + d];
    }
  }
  __host__ __device__ int64_t in_size() const { return in[0] * in[1] * in[2]; }
  __host__ __device__ int64_t out_size() const { return out[0] * out[1] * out[2]; }
  // The part of window `at` inside the input along a dimension: [begin, end) in steps of the gap.
  __device__ void bounds(int d, int64_t at, int64_t& begin, int64_t& end) const {
    const int64_t start = at * stride[d] - padding[d];
    begin = start >= 0 ? start : start + (-start + gap[d] - 1) / gap[d] * gap[d];
    const int64_t behind = start + (kernel[d] - 1) * gap[d] + 1;
    end = behind < in[d] ? behind : in[d];
  }
};

// NaN is the largest, the last of them; of equal numbers the first is taken.
template <class T>
__global__ void max_pool_kernel(const T* x, Windows w, T* values, int64_t* indices) {
  const int64_t size = w.out_size();
  for_each_element(w.planes * size, [=](int64_t i) {
    const T* const plane = x + i / size * w.in_size();
    const int64_t place = i % size;
    int64_t z0, z1, y0, y1, x0, x1;
    w.bounds(0, place / (w.out[1] * w.out[2]), z0, z1);
    w.bounds(1, place / w.out[2] % w.out[1], y0, y1);
    w.bounds(2, place % w.out[2], x0, x1);
    int64_t best = -1;
    Computed<T> top{};
    for (int64_t z = z0; z < z1; z += w.gap[0]) {
      for (int64_t y = y0; y < y1; y += w.gap[1]) {
        for (int64_t k = x0; k < x1; k += w.gap[2]) {
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
void max_pool_cuda(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                   IntList dilation, bool, const Tensor& out, const Tensor& indices) {
  if (out.numel() == 0) return;
  const size_t spatial = kernel_size.size();
  Windows w(self.sizes(), out.sizes(), spatial);
  for (size_t d = 0; d < spatial; ++d) {
    const size_t at = 3 - spatial + d;
    w.kernel[at] = kernel_size[d];
    w.stride[at] = stride.empty() ? kernel_size[d] : stride[d];
    w.padding[at] = padding[d];
    w.gap[at] = dilation.empty() ? 1 : dilation[d];
  }
  const Tensor x = aten::contiguous(self);
  const Place place(out);
  max_pool_kernel<T><<<blocks_for(out.numel()), kBlock, 0, place.stream>>>(
      x.data_as<T>(), w, out.data_as<T>(), indices.data_as<int64_t>());
  check_launched();
}

__device__ const char kBackward[] = "_max_pool_backward";

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
  const Windows w(input_size, grad.sizes(), static_cast<size_t>(spatial));
  const Tensor g = aten::contiguous(grad), chosen = aten::contiguous(indices);
  const SortedPairs pairs =
      sorted_entries("max_pool",
                     LargestElements{chosen.data_as<int64_t>(), w.in_size(), w.out_size(),
                                     faults().place(place.device)},
                     grad.numel(), out.numel(), place);
  fold_meeting(pairs, out.numel(), 1, AddWindows<T>{g.data_as<T>(), out.data_as<T>()}, place);
}

template <class Op>
Registration register_max_pool() {
  return register_cuda<Op>(
      Floats(), []<class T>() { return &max_pool_cuda<T>; }, "max_pool_cuda");
}
[[maybe_unused]] const Registration forward_registered[] = {
    register_max_pool<aten::ops::max_pool1d_with_indices>(),
    register_max_pool<aten::ops::max_pool2d_with_indices>(),
    register_max_pool<aten::ops::max_pool3d_with_indices>()};
const auto backward_registered = register_cuda<aten::ops::_max_pool_backward>(
    Floats(), []<class T>() { return &max_pool_backward_cuda<T>; }, "max_pool_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
