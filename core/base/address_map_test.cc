// Values by address never move, and concurrent threads make each value once.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/base/address_map.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace treadle {
namespace {

TEST(AddressMap, KeepsEachValueInItsPlace) {
  AddressMap<int> map;
  std::vector<char> things(5000);
  std::vector<int*> places;
  EXPECT_EQ(map.find(things.data()), nullptr);
  for (size_t i = 0; i < things.size(); ++i)
    places.push_back(&map.ensure(&things[i], [&] { return static_cast<int>(i); }));
  for (size_t i = 0; i < things.size(); ++i) {
    EXPECT_EQ(map.find(&things[i]), places[i]);
    EXPECT_EQ(&map.ensure(&things[i], [] { return -1; }), places[i]);
    EXPECT_EQ(*places[i], static_cast<int>(i));
  }
  int next = 0;
  map.for_each([&](const void* key, int value) {
    EXPECT_EQ(key, &things[static_cast<size_t>(next)]);
    EXPECT_EQ(value, next++);
  });
  EXPECT_EQ(next, 5000);
  EXPECT_EQ(map.find(nullptr), nullptr);
}

TEST(AddressMap, MakesAValueOnceForAllThreads) {
  AddressMap<std::array<std::atomic<int>, 2>> map;
  std::vector<char> things(2000);
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (char& thing : things) {
        auto& value = map.ensure(&thing, [&] {
          ++made;
          return std::array<std::atomic<int>, 2>{};
        });
        ++value[1];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 2000);
  for (const char& thing : things) EXPECT_EQ((*map.find(&thing))[1], 4);
}

}  // namespace
}  // namespace treadle
