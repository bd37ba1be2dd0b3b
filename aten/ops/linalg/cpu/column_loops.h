// Loops over columns of a matrix, for Householder reflectors.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

inline constexpr int64_t kMostColumns = 8;

// Columns are contiguous, and `pitch` elements apart. `count` is from 1 to kMostColumns.
template <class T>
struct ColumnLoops {
  // sums[c] = the product of columns 0 and c.
  void (*products)(const T* columns, int64_t pitch, int64_t count, int64_t rows, double* sums);
  // Multiplies column 0 by `scale`, and subtracts it, multiplied by weights[c], from column c for
  // c > 0. sums[c - 1] = the product of columns 1 and c, as they then are.
  void (*reflect)(T* columns, int64_t pitch, int64_t count, int64_t rows, T scale, const T* weights,
                  double* sums);
  // y += the product of a symmetric matrix with x, for some columns of its lower triangle.
  void (*multiply_symmetric)(const T* a, int64_t pitch, int64_t rows, int64_t first, int64_t last,
                             const T* x, T* y);
  // Copies from or to rows, and whether it can: of few columns, if nothing is between the rows.
  bool (*to_columns)(const T* from, int64_t row_stride, int64_t count, int64_t rows, T* columns,
                     int64_t pitch);
  bool (*to_rows)(const T* columns, int64_t pitch, int64_t count, int64_t rows, T* to,
                  int64_t row_stride);
};
template <class T>
const ColumnLoops<T>& column_loops();

}  // namespace treadle::simd
