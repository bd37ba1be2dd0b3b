// Lines: a contiguous tensor along one dimension, as `count` lines of `size` elements. The distance
// between the elements of a line is `inner`.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cpu/dim_slices.h"
#include "core/tensor/tensor.h"

namespace treadle::cuda {

struct Lines {
  int64_t count, size, inner;

  __host__ __device__ int64_t at(int64_t line, int64_t j) const {
    const int64_t o = line / inner;
    return (o * size + j) * inner + (line - o * inner);
  }
};

// `dim` may be negative. A 0-dim tensor is one line of one element.
inline Lines lines_of(IntList sizes, int64_t dim) {
  const DimSlices s = dim_slices(sizes, dim);
  return {s.count(), s.size, s.inner};
}

}  // namespace treadle::cuda
