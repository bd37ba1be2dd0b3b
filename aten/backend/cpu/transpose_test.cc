// Every element is written to its own position, and no other memory is written, for every item size
// and for tiles that are whole, partial or single rows.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/transpose.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace treadle::cpu {
namespace {

TEST(Transpose, EveryItemAndTile) {
  for (const int64_t item : {1, 2, 4, 8, 16}) {
    for (const int64_t rows : {1, 3, 4, 15, 16, 17, 64, 65, 130}) {
      for (const int64_t cols : {1, 3, 4, 16, 17, 255, 256, 300}) {
        // Both have gaps between neighbouring elements.
        const TransposedPlane plane{rows, cols, (cols + 3) * item, (rows + 5) * item, item};
        std::vector<unsigned char> src(static_cast<size_t>(cols * plane.src_col_stride));
        for (size_t i = 0; i < src.size(); ++i)
          src[i] = static_cast<unsigned char>(i * 2654435761u >> 11);
        std::vector<unsigned char> expected(static_cast<size_t>(rows * plane.dst_row_stride), 7);
        std::vector<unsigned char> dst = expected;
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < cols; ++j) {
            std::memcpy(&expected[static_cast<size_t>(i * plane.dst_row_stride + j * item)],
                        &src[static_cast<size_t>(j * plane.src_col_stride + i * item)],
                        static_cast<size_t>(item));
          }
        }
        // In two parts, like two threads.
        const int64_t middle = std::min(rows, transpose_band(item));
        const auto at = [](auto& bytes) { return reinterpret_cast<char*>(bytes.data()); };
        transpose_rows(plane, at(dst), at(src), 0, middle);
        transpose_rows(plane, at(dst), at(src), middle, rows);
        ASSERT_EQ(dst, expected) << item << " bytes, " << rows << " x " << cols;
      }
    }
  }
}

}  // namespace
}  // namespace treadle::cpu
