// Common parts of the normalisations: parameters that may be absent, the distribution of rows over
// threads, and sums of columns.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/contiguous.h"
#include "core/tensor/tensor.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {

inline Tensor dense(const Tensor& t) { return t.defined() ? aten::contiguous(t) : t; }

// `count` contiguous elements of a weight or bias; each is `otherwise` if it is absent.
template <class T>
class Parameter {
 public:
  Parameter(const Tensor& t, int64_t count, T otherwise)
      : given_(dense(t)), absent_(t.defined() ? 0 : static_cast<size_t>(count), otherwise) {}
  const T* data() const { return given_.defined() ? given_.data_as<T>() : absent_.data(); }

 private:
  Tensor given_;
  std::vector<T> absent_;
};

// The number of rows of this length that repay a thread of their own.
inline int64_t grain_of(int64_t length) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, length));
}

// Two sums of each column of a matrix. row(r, first, second) adds the terms of row r, and does what
// else there is to do while the row is in a cache. put(column, first, second) receives the sums.
// Bands of rows are summed in parallel and then added in order; they depend only on the sizes.
template <class C, class Row, class Put>
void sum_columns(int64_t rows, int64_t columns, Row&& row, Put&& put) {
  const int64_t band = std::max(2 * kSumRun, grain_of(columns)), bands = (rows + band - 1) / band;
  std::vector<double> sums(static_cast<size_t>(std::max<int64_t>(1, bands) * 2 * columns));
  parallel_for(bands, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      ColumnSums<C> own(2 * columns);
      for (int64_t r = b * band; r < std::min(rows, (b + 1) * band); ++r)
        own.add_row([&](C* to) { row(r, to, to + columns); });
      own.take([&, to = sums.data() + b * 2 * columns](int64_t k, double sum) { to[k] = sum; });
    }
  });
  for (int64_t b = 1; b < bands; ++b) {
    const double* const from = sums.data() + b * 2 * columns;
    for (int64_t k = 0; k < 2 * columns; ++k) sums[static_cast<size_t>(k)] += from[k];
  }
  for (int64_t k = 0; k < columns; ++k)
    put(k, static_cast<C>(sums[static_cast<size_t>(k)]),
        static_cast<C>(sums[static_cast<size_t>(columns + k)]));
}

}  // namespace treadle::cpu
