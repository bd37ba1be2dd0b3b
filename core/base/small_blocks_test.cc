// SPDX-License-Identifier: Apache-2.0

#include "core/base/small_blocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace treadle {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif

TEST(SmallBlocks, NextObjectOfTheSizeTakesTheBlock) {
  void* const first = take_small_block(40);
  give_small_block(first, 40);
  void* const other = take_small_block(300);
  void* const second = take_small_block(64);  // of the same 32 bytes as 40
  if (kKeeps) EXPECT_EQ(second, first);
  EXPECT_NE(other, second);
  give_small_block(other, 300);
  give_small_block(second, 64);
}

TEST(SmallBlocks, LiveBlocksAreApartAndAligned) {
  for (const size_t size : {1, 31, 32, 33, 511, 512, 513, 5000}) {
    std::vector<void*> blocks;
    for (int round = 0; round < 2; ++round) {
      std::set<void*> seen;
      for (int i = 0; i < 100; ++i) {
        void* const block = take_small_block(size);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 16, 0u);
        std::memset(block, i, size);
        seen.insert(block);
        blocks.push_back(block);
      }
      EXPECT_EQ(seen.size(), 100u);
      for (int i = 0; i < 100; ++i) {
        const auto* bytes = static_cast<unsigned char*>(blocks[static_cast<size_t>(i)]);
        EXPECT_EQ(bytes[0], i);
        EXPECT_EQ(bytes[size - 1], i);
      }
      for (void* block : blocks) give_small_block(block, size);
      blocks.clear();
    }
  }
}

// Blocks that another thread made, and blocks that outlive the thread that made them.
TEST(SmallBlocks, PassBetweenThreads) {
  std::vector<void*> from_here, from_there;
  for (int i = 0; i < 100; ++i) from_here.push_back(take_small_block(96));
  std::thread([&] {
    for (void* block : from_here) give_small_block(block, 96);
    for (int i = 0; i < 100; ++i) from_there.push_back(take_small_block(96));
  }).join();
  for (void* block : from_there) {
    std::memset(block, 7, 96);
    give_small_block(block, 96);
  }
}

// A destructor of the thread's own objects runs after the thread gave its blocks back.
struct LateOwner {
  void* block = nullptr;
  ~LateOwner() { give_small_block(block, 128); }
};
thread_local LateOwner late;

TEST(SmallBlocks, GivenWhileAThreadEnds) {
  std::thread([] {
    late.block = take_small_block(128);  // `late` is made first, so it goes last
    give_small_block(take_small_block(128), 128);
  }).join();
}

}  // namespace
}  // namespace treadle
