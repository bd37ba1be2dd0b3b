// Non-temporal copies: every byte, wherever it starts and ends in a line, and no byte beside them.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/non_temporal_stores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace treadle::cpu {
namespace {

TEST(NonTemporalStores, AreOnForLargeResultsAlone) {
  EXPECT_FALSE(NonTemporalStores(int64_t{1} << 20).on());
  EXPECT_TRUE(NonTemporalStores(int64_t{1} << 30).on());
}

TEST(NonTemporalStores, CopyEachByteAndNoOther) {
  std::vector<char> from(80000), expected(80000), to(80000);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 7 % 251 + 1);
  for (const int64_t total : {int64_t{1}, int64_t{1} << 30}) {
    const NonTemporalStores writes(total);
    for (const size_t first : {0, 1, 16, 63, 64}) {
      for (const size_t bytes : {0, 1, 63, 64, 255, 256, 257, 320, 1024, 3001, 70001}) {
        for (const size_t source : {0, 5}) {
          std::fill(to.begin(), to.end(), 0);
          std::fill(expected.begin(), expected.end(), 0);
          std::copy_n(from.begin() + static_cast<int64_t>(source), bytes,
                      expected.begin() + static_cast<int64_t>(first));
          writes.copy(to.data() + first, from.data() + source, static_cast<int64_t>(bytes));
          writes.finish();
          ASSERT_EQ(to, expected) << first << " " << bytes << " " << source;
        }
      }
    }
  }
}

TEST(NonTemporalStores, SayWhereTheNextLineBegins) {
  alignas(64) char memory[128];
  EXPECT_EQ(NonTemporalStores::until_line(memory), 0);
  EXPECT_EQ(NonTemporalStores::until_line(memory + 1), 63);
  EXPECT_EQ(NonTemporalStores::until_line(memory + 64), 0);
}

}  // namespace
}  // namespace treadle::cpu
