// Philox against its published vectors, and positions in its stream.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/device/generator.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace treadle {
namespace {

using Block = std::array<uint32_t, 4>;

TEST(Philox, PublishedVectors) {
  EXPECT_EQ(philox4x32(0, 0, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Generator, ReservesEachPositionOnce) {
  const Generator g = make_generator(kCPU);
  g->seed(5);
  EXPECT_EQ(g->initial_seed(), 5u);
  std::vector<std::thread> threads;
  std::array<std::vector<uint64_t>, 4> starts;
  for (auto& mine : starts) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) mine.push_back(g->reserve(3).offset);
    });
  }
  for (std::thread& t : threads) t.join();
  std::vector<bool> seen(12000);
  for (const auto& mine : starts) {
    for (uint64_t at : mine) {
      ASSERT_EQ(at % 3, 0u);
      ASSERT_FALSE(seen[at]);
      seen[at] = true;
    }
  }
  EXPECT_EQ(g->position().offset, 12000u);
  g->set_position({7, 9});
  EXPECT_EQ(g->reserve(1).offset, 9u);
  EXPECT_EQ(g->position().seed, 7u);
}

TEST(Generator, ALentStreamGivesNoNumberTwice) {
  const Device cuda{DeviceType::CUDA, 0};
  const Generator source = make_generator(cuda);
  source->seed(5);
  const Generator first = make_generator(kCPU, source), second = make_generator(kCPU, source);
  EXPECT_TRUE(first->device().is_cpu());
  EXPECT_EQ(first->reserve(3).offset, 0u);
  EXPECT_EQ(second->reserve(4).offset, 3u);
  EXPECT_EQ(source->reserve(1).offset, 7u);
  EXPECT_EQ(first->position().offset, 8u);
  EXPECT_EQ(first->initial_seed(), 5u);
  second->set_position({6, 2});
  EXPECT_EQ(source->position().seed, 6u);
}

TEST(Generator, EachDeviceHasADefault) {
  EXPECT_EQ(default_generator(kCPU), default_generator(kCPU));
  const Device cuda{DeviceType::CUDA, 0};
  EXPECT_EQ(default_generator(cuda), default_generator(cuda));
  EXPECT_FALSE(default_generator(cuda) == default_generator(kCPU));
  const Generator own = make_generator(kCPU);
  EXPECT_EQ(generator_or_default(own), own);
}

TEST(Generator, UnitNumbersStayBelowOne) {
  EXPECT_EQ(uniform_float(0), 0.0f);
  EXPECT_LT(uniform_float(~0u), 1.0f);
  EXPECT_LT(uniform_double(~0u, ~0u), 1.0);
}

}  // namespace
}  // namespace treadle
