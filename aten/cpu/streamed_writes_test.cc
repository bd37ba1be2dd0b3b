// Copies past the caches: each byte, wherever it starts and ends in a line, and none beside them.
#include "aten/cpu/streamed_writes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace treadle::cpu {
namespace {

TEST(StreamedWrites, AreOnForLargeResultsAlone) {
  EXPECT_FALSE(StreamedWrites(int64_t{1} << 20).on());
  EXPECT_TRUE(StreamedWrites(int64_t{1} << 30).on());
}

TEST(StreamedWrites, CopyEachByteAndNoOther) {
  std::vector<char> from(4096), expected(4096), to(4096);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 7 % 251 + 1);
  for (const int64_t total : {int64_t{1}, int64_t{1} << 30}) {
    const StreamedWrites writes(total);
    for (const size_t first : {0, 1, 16, 63, 64}) {
      for (const size_t bytes : {0, 1, 63, 64, 255, 256, 257, 320, 1024, 3001}) {
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

TEST(StreamedWrites, PiecesEndWhereLinesEnd) {
  alignas(64) char memory[4096];
  for (int64_t first = 0; first < 64; ++first) {
    const int64_t piece = StreamedWrites::piece_at(memory + first);
    EXPECT_GT(piece, 0);
    EXPECT_LE(piece, StreamedWrites::kPiece);
    EXPECT_EQ((first + piece) % 64, 0);
  }
}

}  // namespace
}  // namespace treadle::cpu
