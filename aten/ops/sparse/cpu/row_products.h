// Sums of products of the entries of rows and of elements of a vector, by vectors.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

// Rows of a compressed matrix, by which a vector of `width` elements, fewer than 2^31, is
// multiplied. Entries bounds[r], ..., bounds[r + 1] - 1 are those of row r.
template <class T>
struct RowProducts {
  const int64_t* bounds;
  int64_t rows;
  const int64_t* columns;
  const T* values;
  const T* x;
  int64_t width;
};

// Writes the product of each row to `out`, in runs of `run` entries whose sums are added in double.
// Returns the number of rows, or that of a row with a column that is none of the vector's; then
// `out` is not written to the end. Each column is read once, so another thread may write the
// columns meanwhile.
template <class T>
using SumRowProducts = int64_t (*)(const RowProducts<T>& of, int64_t run, T* out);
// That of the machine's target, for float or double.
template <class T>
SumRowProducts<T> sum_row_products();

}  // namespace treadle::simd
