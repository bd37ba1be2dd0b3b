// The steps of softmax on rows of scores, with the widest vectors this machine has.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::cpu {

template <class T>
struct RowLoops {
  // x[i] = exp(x[i] - shift) for n elements; returns their sum.
  T (*exp_shifted)(T* x, int64_t n, T shift);
  // The largest of n elements, NaN left out; -inf for none.
  T (*largest)(const T* x, int64_t n);
  // y[i] = x[i] / by for n elements.
  void (*divide)(const T* x, T by, T* y, int64_t n);
};
// Of float and double.
template <class T>
const RowLoops<T>& row_loops();
template <>
const RowLoops<float>& row_loops();
template <>
const RowLoops<double>& row_loops();

}  // namespace treadle::cpu
