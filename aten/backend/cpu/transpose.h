// Copies of a matrix into a result whose memory runs along the other dimension.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::cpu {

// Elements are opaque: 1, 2, 4, 8 or 16 bytes. Strides are in bytes.
struct TransposedPlane {
  int64_t rows, cols;      // of the result
  int64_t dst_row_stride;  // a row of dst is contiguous
  int64_t src_col_stride;  // a column of src is contiguous
  int64_t item;            // bytes of an element
};

// The number of rows that are transposed together. Threads should split between such bands.
int64_t transpose_band(int64_t item);

// Rows [begin, end) of the result: dst[i, j] = src[j, i]. dst and src do not overlap.
void transpose_rows(const TransposedPlane& plane, char* dst, const char* src, int64_t begin,
                    int64_t end);

}  // namespace treadle::cpu
