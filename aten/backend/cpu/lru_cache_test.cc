// The value that goes is the one that was not used for longest.
#include "aten/backend/cpu/lru_cache.h"

#include <gtest/gtest.h>

#include <string>

namespace treadle::cpu {
namespace {

TEST(RecentlyUsed, ForgetsWhatWasNotUsedForLongest) {
  RecentlyUsed<int, std::string> kept(3);
  EXPECT_EQ(kept.find(1), nullptr);
  for (const int key : {1, 2, 3})
    EXPECT_EQ(kept.put(key, std::to_string(key)), std::to_string(key));
  ASSERT_NE(kept.find(1), nullptr);
  EXPECT_EQ(*kept.find(1), "1");
  kept.put(4, "4");  // instead of 2
  EXPECT_EQ(kept.find(2), nullptr);
  for (const int key : {1, 3, 4}) EXPECT_NE(kept.find(key), nullptr) << key;
  EXPECT_EQ(kept.size(), 3u);
}

TEST(RecentlyUsed, KeepsAllButOneOfOneMoreThanItHolds) {
  RecentlyUsed<int, int> kept(100);
  for (int key = 0; key <= 100; ++key) kept.put(key, key);
  int found = 0;
  for (int key = 0; key <= 100; ++key) found += kept.find(key) != nullptr;
  EXPECT_EQ(found, 100);
}

}  // namespace
}  // namespace treadle::cpu
