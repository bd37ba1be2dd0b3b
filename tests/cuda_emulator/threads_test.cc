// The emulator's threads: where they meet, what lanes give each other, in which order they run, and
// what is said of those that wait in vain; and the products of tensor cores.
//
// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulator/threads.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "tests/cuda_emulator/device_code.h"
#include "tests/cuda_emulator/instructions.h"
#include "tests/cuda_emulator/tensor_cores.h"

namespace treadle::cuda::emulator {
namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing raised";
}

TEST(EmulatorThreads, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<int> runs(2 * 3 * 40);
  run_grid(dim3(2, 3), dim3(40), 0,
           [&] { ++runs[(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x]; });
  EXPECT_EQ(runs, std::vector<int>(runs.size(), 1));
}

TEST(EmulatorThreads, ABlockMeetsBeforeAnyGoesOn) {
  for (int launch = 0; launch < 2; ++launch) {  // in either order
    int came = 0;
    run_grid(dim3(1), dim3(100), 0, [&] {
      ++came;
      meet_block();
      EXPECT_EQ(came, 100);
    });
  }
}

TEST(EmulatorThreads, ThoseThatEndedAreNotWaitedFor) {
  int came = 0;
  run_grid(dim3(1), dim3(64), 0, [&] {
    if (threadIdx.x % 2) end_thread();
    ++came;
    meet_block();
    EXPECT_EQ(came, 32);
  });
}

TEST(EmulatorThreads, TheLastBeginsInEverySecondLaunch) {
  std::vector<unsigned> first;
  for (int launch = 0; launch < 2; ++launch) {
    bool begun = false;
    run_grid(dim3(1), dim3(70), 0, [&] {
      if (!std::exchange(begun, true)) first.push_back(threadIdx.x);
    });
  }
  EXPECT_EQ(first[0] + first[1], 69u);
}

TEST(EmulatorThreads, LanesGiveEachOther) {
  std::vector<int> sums(64);
  run_grid(dim3(1), dim3(64), 0, [&] {
    int sum = static_cast<int>(threadIdx.x);
    for (int step = 1; step < 32; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
    sums[threadIdx.x] = sum;
  });
  for (int i = 0; i < 64; ++i) EXPECT_EQ(sums[static_cast<size_t>(i)], i < 32 ? 496 : 1520);
}

TEST(EmulatorThreads, SaysThatSomeWaitInVain) {
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(error_of([] {
                run_grid(dim3(1), dim3(64), 0, [] {
                  if (threadIdx.x < 5)
                    meet_warp();
                  else
                    meet_block();
                });
              }),
              "internal error, please report it: a kernel's threads wait for each other: 59 of 64 "
              "where the block meets");
  }
  EXPECT_EQ(error_of([] { run_grid(dim3(1), dim3(2000), 0, [] {}); }),
            "internal error, please report it: a launch of 1 x 1 x 1 blocks of 2000 threads with 0 "
            "bytes");
}

// The places of the parts are those of aten/backend/cuda/kernels/tensor_cores.cuh.
TEST(EmulatorThreads, TensorCoresMultiply) {
  alignas(16) Half left[16][16];
  Half right[16][8];
  float expected[16][8] = {}, found[16][8] = {};
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) left[i][j] = Half(static_cast<float>((i * 7 + j * 3) % 11 - 5));
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) right[i][j] = Half(static_cast<float>((i * 5 + j) % 7 - 3));
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j)
      for (int k = 0; k < 16; ++k)
        expected[i][j] += static_cast<float>(left[i][k]) * static_cast<float>(right[k][j]);
  run_grid(dim3(1), dim3(32), 0, [&] {
    const int l = lane(), group = l / 4, pair = l % 4 * 2;
    const auto two = [](Half a, Half b) {
      return packed<Half>(static_cast<float>(a), static_cast<float>(b));
    };
    uint32_t factors[4];
    load_matrices(factors, &left[l % 8 + l / 8 % 2 * 8][l / 16 * 8]);
    float sums[4] = {};
    multiply_16x8<Half>(sums, factors, two(right[pair][group], right[pair + 1][group]),
                        two(right[pair + 8][group], right[pair + 9][group]));
    for (int i = 0; i < 4; ++i) found[group + i / 2 * 8][pair + i % 2] = sums[i];
  });
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) EXPECT_EQ(found[i][j], expected[i][j]) << i << " " << j;
}

TEST(EmulatorThreads, HalvesAreRoundedAsElsewhere) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = Half::from_bits(static_cast<uint16_t>(bits));
    const float wide = static_cast<float>(half);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(float_of_half(half.bits)));
      EXPECT_EQ(half_bits(wide), 0x7fff);
      continue;
    }
    EXPECT_EQ(float_of_half(half.bits), wide);
    // Between it and the next one, and a little to both sides of the middle.
    const float next = static_cast<float>(Half::from_bits(static_cast<uint16_t>(bits + 1)));
    if (std::isfinite(next)) {
      const float middle = wide / 2 + next / 2;
      for (const float v :
           {wide, middle, std::nextafter(middle, wide), std::nextafter(middle, next)})
        ASSERT_EQ(half_bits(v), Half(v).bits) << v;
    }
  }
  for (const float v : {65504.0f, 65519.9f, 65520.0f, 1e30f, -1e30f, 1e-30f, -0.0f, 2.98e-8f})
    EXPECT_EQ(half_bits(v), Half(v).bits) << v;
}

}  // namespace
}  // namespace treadle::cuda::emulator
