// Loops over the slices of a contiguous tensor along one dimension (DimSlices of
// core/base/geometry.h).
//
// A slice is the set of `size` elements that differ in that dimension only. Their distance is
// `inner`. Softmax, sorting, scans and reductions along a dimension work on one slice at a time.
// Slices are independent, so they may run in any order.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "core/tensor/tensor.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {

// The approximate number of elements in one piece of a parallel loop.
inline constexpr int64_t kGrain = 32768;

// The number of units of `work` elements in a piece.
inline int64_t grain_for(int64_t work) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work));
}

// f(first element of the slice, index of the slice), for every slice in parallel.
template <class F>
void for_each_slice(const DimSlices& s, F&& f) {
  parallel_for(s.count(), grain_for(s.size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f((i / s.inner) * s.size * s.inner + i % s.inner, i);
  });
}

// Neighbouring slices. Kernels process them together, so that memory is read in order.
inline constexpr int64_t kColumns = 256;

// f(outer index, first column, columns), for blocks of at most kColumns of the `inner` columns, in
// parallel.
template <class F>
void for_each_column_block(const DimSlices& s, F&& f) {
  const int64_t blocks = (s.inner + kColumns - 1) / kColumns;
  parallel_for(s.outer * blocks, grain_for(s.size * std::min(s.inner, kColumns)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t column = (i % blocks) * kColumns;
                   f(i / blocks, column, std::min(kColumns, s.inner - column));
                 }
               });
}

}  // namespace treadle::cpu
