// The windows of a pooling, which slide or cover the input evenly, and the planes (one image, one
// channel) that it covers: aten/ops/convolution/cpu/pool_windows.h for a device.
//
// All pooling is over (depth, height, width). Dimensions that are not pooled come first, with size
// 1 and one window.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cuda/kernels/kernel.cuh"

namespace treadle::cuda {

struct Range {
  int64_t begin, end;
};

struct PoolWindows {
  int64_t planes = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, gap[3] = {1, 1, 1};
  bool even = false;

  // Windows that cover the input evenly. They overlap where the sizes do not divide.
  PoolWindows(IntList input, IntList output, size_t spatial) : even(true) {
    const size_t first = input.size() - spatial;
    for (size_t d = 0; d < first; ++d) planes *= input[d];
    for (size_t d = 0; d < spatial; ++d) {
      const size_t at = 3 - spatial + d;
      in[at] = input[first + d];
      out[at] = output[first + d];
      int64_t product;
      check<ErrorKind::Runtime>(
          !__builtin_mul_overflow(in[at], out[at] + 1, &product), OpName("adaptive_pool"),
          "expected sizes whose product is below 2^63 on cuda, got ", in[at], " and ", out[at]);
    }
  }
  // Sliding windows, with the sizes and steps that the shape rule has checked.
  PoolWindows(IntList input, IntList output, IntList kernel_size, IntList steps, IntList paddings,
              IntList dilation)
      : PoolWindows(input, output, kernel_size.size()) {
    even = false;
    const size_t spatial = kernel_size.size();
    for (size_t d = 0; d < spatial; ++d) {
      const size_t at = 3 - spatial + d;
      kernel[at] = kernel_size[d];
      stride[at] = steps.empty() ? kernel_size[d] : steps[d];
      padding[at] = paddings[d];
      gap[at] = dilation.empty() ? 1 : dilation[d];
    }
  }

  __host__ __device__ int64_t in_size() const { return in[0] * in[1] * in[2]; }
  __host__ __device__ int64_t out_size() const { return out[0] * out[1] * out[2]; }

  // The part of window `at` inside the input along a dimension, in steps of the dilation.
  __device__ Range of_window(int d, int64_t at) const {
    if (even) return {at * in[d] / out[d], ((at + 1) * in[d] + out[d] - 1) / out[d]};
    const int64_t start = at * stride[d] - padding[d];
    const int64_t behind = start + (kernel[d] - 1) * gap[d] + 1;
    return {start >= 0 ? start : start + (-start + gap[d] - 1) / gap[d] * gap[d],
            behind < in[d] ? behind : in[d]};
  }
  // The windows without dilation that hold position `at` of the input.
  __device__ Range of_position(int d, int64_t at) const {
    if (even) return {at * out[d] / in[d], ((at + 1) * out[d] + in[d] - 1) / in[d]};
    const int64_t shifted = at + padding[d], behind = shifted / stride[d] + 1;
    return {shifted < kernel[d] ? 0 : (shifted - kernel[d]) / stride[d] + 1,
            behind < out[d] ? behind : out[d]};
  }
  // A window's size with the padding that belongs to it, and without.
  __device__ double size(int d, int64_t at, bool with_padding) const {
    const Range r = of_window(d, at);
    if (even || !with_padding) return static_cast<double>(r.end > r.begin ? r.end - r.begin : 0);
    const int64_t start = at * stride[d] - padding[d], behind = start + kernel[d];
    const int64_t last = in[d] + padding[d];
    return static_cast<double>((behind < last ? behind : last) - start);
  }
};

}  // namespace treadle::cuda
