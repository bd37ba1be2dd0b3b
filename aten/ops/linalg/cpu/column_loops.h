// Loops over a few columns of a matrix, for Householder reflectors.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

inline constexpr int64_t kMostColumns = 8;

// Columns are contiguous, `pitch` elements apart. `count` is at least 1 and at most kMostColumns.
template <class T>
struct ColumnLoops {
  // sums[c] = the product of columns 0 and c.
  void (*products)(const T* columns, int64_t pitch, int64_t count, int64_t rows, double* sums);
  // Multiplies column 0 by `scale`, and subtracts it, multiplied by weights[c], from column c for
  // c > 0. sums[c - 1] = the product of columns 1 and c, as they then are.
  void (*reflect)(T* columns, int64_t pitch, int64_t count, int64_t rows, T scale, const T* weights,
                  double* sums);
  // Copies from or to rows, and whether it can: of few columns, if nothing is between the rows.
  bool (*to_columns)(const T* from, int64_t row_stride, int64_t count, int64_t rows, T* columns,
                     int64_t pitch);
  bool (*to_rows)(const T* columns, int64_t pitch, int64_t count, int64_t rows, T* to,
                  int64_t row_stride);
};
template <class T>
const ColumnLoops<T>& column_loops();

}  // namespace treadle::simd
