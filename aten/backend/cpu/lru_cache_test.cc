// The evicted value is the least recently used one.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/lru_cache.h"

#include <gtest/gtest.h>

#include <string>

namespace treadle::cpu {
namespace {

TEST(LruCache, ForgetsWhatWasNotUsedForLongest) {
  LruCache<int, std::string> cache(3);
  EXPECT_EQ(cache.find(1), nullptr);
  for (const int key : {1, 2, 3})
    EXPECT_EQ(cache.put(key, std::to_string(key)), std::to_string(key));
  ASSERT_NE(cache.find(1), nullptr);
  EXPECT_EQ(*cache.find(1), "1");
  cache.put(4, "4");  // instead of 2
  EXPECT_EQ(cache.find(2), nullptr);
  for (const int key : {1, 3, 4}) EXPECT_NE(cache.find(key), nullptr) << key;
  EXPECT_EQ(cache.size(), 3u);
}

TEST(LruCache, KeepsAllButOneOfOneMoreThanItHolds) {
  LruCache<int, int> cache(100);
  for (int key = 0; key <= 100; ++key) cache.put(key, key);
  int found = 0;
  for (int key = 0; key <= 100; ++key) found += cache.find(key) != nullptr;
  EXPECT_EQ(found, 100);
}

}  // namespace
}  // namespace treadle::cpu
