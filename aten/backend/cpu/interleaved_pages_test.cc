// Interleaved pages: every element is visited once, whatever remains at the end.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/interleaved_pages.h"

#include <gtest/gtest.h>

#include <vector>

namespace treadle::cpu {
namespace {

TEST(InterleavedPages, AreEverythingOnceAndEndAtTheEnd) {
  for (const int64_t piece : {0, 1, 8, 128}) {
    for (const int64_t n : {0, 1, 127, 128, 8191, 8192, 8193, 70000}) {
      std::vector<int> seen(static_cast<size_t>(n));
      InterleavedPages turns(n, piece);
      do {
        ASSERT_TRUE(piece == 0 ? turns.first == 0 : turns.first % piece == 0);
        for (int64_t i = turns.first; i < turns.end; ++i) ++seen[static_cast<size_t>(i)];
      } while (turns.next());
      EXPECT_EQ(turns.end, n);
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << piece << " " << n;
    }
  }
}

}  // namespace
}  // namespace treadle::cpu
