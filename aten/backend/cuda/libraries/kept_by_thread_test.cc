// Each thread has its own object; a new thread takes over that of an ended one.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/libraries/kept_by_thread.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

namespace treadle::cuda {
namespace {

struct Kept {
  int uses = 0;
};

Kept* of_a_thread() {
  Kept* found = nullptr;
  std::thread([&] {
    found = &kept_by_thread<Kept>();
    ++found->uses;
    EXPECT_EQ(found, &kept_by_thread<Kept>());
  }).join();
  return found;
}

TEST(KeptByThread, AThreadThatEndsLeavesItToTheNext) {
  Kept* const first = of_a_thread();
  EXPECT_EQ(of_a_thread(), first);
  EXPECT_EQ(of_a_thread()->uses, 3);
}

TEST(KeptByThread, ThreadsAtTheSameTimeHaveTheirOwn) {
  Kept* found[2] = {};
  std::latch both(2);
  const auto take = [&](int i) {
    found[i] = &kept_by_thread<Kept>();
    both.arrive_and_wait();
  };
  std::thread a(take, 0), b(take, 1);
  a.join();
  b.join();
  EXPECT_NE(found[0], found[1]);
}

TEST(KeptByThread, EachTypeIsKeptApart) {
  struct Other : Kept {};
  EXPECT_NE(static_cast<void*>(&kept_by_thread<Other>()),
            static_cast<void*>(&kept_by_thread<Kept>()));
}

}  // namespace
}  // namespace treadle::cuda
