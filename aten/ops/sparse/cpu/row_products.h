// Sums of products of the entries of rows and of elements of a vector, by vectors.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

// Rows of a compressed matrix of `count` entries, by which a vector of `width` elements is
// multiplied. Entries offsets[r], ..., offsets[r + 1] - 1 are those of row r.
template <class T>
struct RowProducts {
  const int64_t* offsets;
  int64_t rows;
  const int64_t* columns;
  const T* values;
  int64_t count;
  const T* x;
  int64_t width;
};

// Writes the product of each row to `out`, in runs of `run` entries whose sums are added in double.
// Returns the number of rows, or that of a row with a wrong offset or column; then `out` is not
// written to the end. Offsets and columns are checked as they are read, so another thread may write
// them meanwhile.
template <class T>
using SumRowProducts = int64_t (*)(const RowProducts<T>& of, int64_t run, T* out);
// That of the machine's target, for float or double. It reads the vector by the instruction for
// several elements, or one by one; sums have the same bits.
template <class T>
SumRowProducts<T> sum_row_products(bool at_once);
// Whether the instruction takes less time on this machine, for a vector of so many elements.
bool gathers_at_once(int64_t width);

}  // namespace treadle::simd
