// Axes: the offsets of a tensor's elements along some dimensions, by row-major index. Dimensions
// that can be traversed as one are merged.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace treadle::cuda {

struct Axes {
  static constexpr int kMax = 12;
  int count = 0;
  int64_t sizes[kMax] = {}, strides[kMax] = {};  // strides in elements

  void add(const char* op, int64_t size, int64_t stride) {
    if (size == 1) return;
    if (count > 0 && strides[count - 1] == stride * size) {
      sizes[count - 1] *= size;
      strides[count - 1] = stride;
      return;
    }
    check<ErrorKind::Runtime>(count < kMax, OpName(op), "expected at most ", kMax,
                              " dimensions on cuda, got more");
    sizes[count] = size;
    strides[count++] = stride;
  }

  // Unrolled for each dimension, because an array index that is only known at run time would make
  // every thread copy the arrays.
  __device__ int64_t at(int64_t i) const {
    if (count == 0) return 0;
    int64_t place = 0;
#pragma unroll
    for (int d = kMax - 1; d > 0; --d) {
      if (d >= count) continue;
      const int64_t rest = i / sizes[d];
      place += (i - rest * sizes[d]) * strides[d];
      i = rest;
    }
    return place + i * strides[0];
  }
};

// The dimensions `dims` of `t`, the last one varying fastest.
inline Axes axes_of(const char* op, const Tensor& t, IntList dims) {
  Axes axes;
  for (const int64_t d : dims) axes.add(op, t.size(d), t.stride(d));
  return axes;
}
// A tensor with these strides, over `sizes`. A stride of 0 leaves a dimension out.
inline Axes axes_over(const char* op, IntList sizes, IntList strides) {
  Axes axes;
  for (size_t d = 0; d < sizes.size(); ++d) axes.add(op, sizes[d], strides[d]);
  return axes;
}

}  // namespace treadle::cuda
