// Elements of a triangle by index, compared with a loop over its rows.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/creation/cuda/triangle.h"

#include <gtest/gtest.h>

#include <tuple>

namespace treadle::cuda {
namespace {

TEST(Triangle, KnowsTheRowAndColumnOfEachElement) {
  for (const bool upper : {false, true}) {
    for (int64_t rows = 0; rows < 7; ++rows) {
      for (int64_t columns = 0; columns < 7; ++columns) {
        for (int64_t offset = -rows - 1; offset <= columns + 1; ++offset) {
          const Triangle triangle{rows, columns, offset, upper};
          int64_t at = 0;
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < columns; ++c) {
              if (upper ? c - r < offset : c - r > offset) continue;
              ASSERT_EQ(std::tuple(triangle.row_of(at), triangle.column_of(at, r)),
                        std::tuple(r, c))
                  << rows << " x " << columns << ", " << offset << ", " << upper;
              ++at;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace treadle::cuda
