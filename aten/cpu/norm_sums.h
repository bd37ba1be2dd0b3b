// What the normalisations share: sums of rows, and parameters that may be absent.
#pragma once

#include <algorithm>

#include "aten/ops/contiguous.h"
#include "core/tensor.h"

namespace treadle::cpu {

// Sums with several accumulators: as accurate as a short pairwise sum, and the compiler can
// vectorise it.
template <class C, class F>
C sum_of(int64_t n, F&& term) {
  constexpr int64_t kLanes = 8;
  C lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] += term(i + l);
  }
  for (int64_t l = 0; i < n; ++i, ++l) lanes[l] += term(i);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

// Element i of a weight or bias, or what stands for it where there is none.
template <class T>
compute_type<T> parameter(const Tensor& t, int64_t i, compute_type<T> otherwise) {
  return t.defined() ? static_cast<compute_type<T>>(t.data_as<T>()[i]) : otherwise;
}
inline Tensor dense(const Tensor& t) { return t.defined() ? aten::contiguous(t) : t; }

// How many rows of this length are worth a thread of their own.
inline int64_t grain_of(int64_t length) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, length));
}

}  // namespace treadle::cpu
