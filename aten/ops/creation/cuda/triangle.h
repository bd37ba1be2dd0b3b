// Triangle: the row and column of each of its elements, from the element's index alone.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::cuda {

// The elements of a matrix on and below (or above) a diagonal, row by row. The offset of a row is a
// sum of widths: first zeros, then widths that grow by one, then the number of columns.
struct Triangle {
  int64_t rows, columns, offset;
  bool upper;

  constexpr int64_t clamped(int64_t column) const {
    return column < 0 ? 0 : column > columns ? columns : column;
  }
  // The sum of clamped(i + shift) for i < row.
  constexpr int64_t widths(int64_t row, int64_t shift) const {
    const int64_t begin = shift < 0 ? -shift : 0;
    const int64_t full = columns - shift > begin ? columns - shift : begin;
    if (row <= begin) return 0;
    const int64_t last = row < full ? row : full;
    const int64_t growing = (begin + last - 1 + 2 * shift) * (last - begin) / 2;
    return growing + (row > full ? (row - full) * columns : 0);
  }
  constexpr int64_t before(int64_t row) const {
    return upper ? row * columns - widths(row, offset) : widths(row, offset + 1);
  }
  // The row of element `at`.
  constexpr int64_t row_of(int64_t at) const {
    int64_t first = 0, behind = rows - 1;
    while (first < behind) {
      const int64_t middle = (first + behind) / 2;
      if (before(middle + 1) > at)
        behind = middle;
      else
        first = middle + 1;
    }
    return first;
  }
  constexpr int64_t column_of(int64_t at, int64_t row) const {
    return at - before(row) + (upper ? clamped(row + offset) : 0);
  }
};

}  // namespace treadle::cuda
