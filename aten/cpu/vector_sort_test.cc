// Sorting by vectors, on every target of this machine: against the C++ library, at all sizes that
// the network has a way of its own for, and beyond; nothing else is written.
#include "aten/cpu/vector_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "aten/cpu/simd/targets.h"

namespace treadle {
namespace {

class VectorSort : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > best_) GTEST_SKIP() << "this machine does not have the target";
    simd::chosen_target = GetParam();
  }
  void TearDown() override { simd::chosen_target = best_; }

  // Sorts `count` keys amid others that must stay.
  template <class Key>
  static void expect_sorted(int64_t count, const std::function<Key()>& draw) {
    constexpr int64_t kGuard = 3;
    std::vector<Key> keys(static_cast<size_t>(count + 2 * kGuard), Key{7});
    std::generate_n(keys.begin() + kGuard, count, draw);
    std::vector<Key> expected = keys;
    std::sort(expected.begin() + kGuard, expected.end() - kGuard);
    cpu::vector_sort(keys.data() + kGuard, count);
    ASSERT_EQ(keys, expected) << count << " keys of " << sizeof(Key) << " bytes";
  }
  template <class Key>
  static void expect_sorted(int64_t count) {
    std::mt19937_64 random(static_cast<uint64_t>(count));
    constexpr Key kMost = std::numeric_limits<Key>::max();
    expect_sorted<Key>(count, [&] { return static_cast<Key>(random()); });
    expect_sorted<Key>(count, [&] { return static_cast<Key>(random() % 3); });
    expect_sorted<Key>(count, [&] { return static_cast<Key>(kMost - random() % 2); });
    expect_sorted<Key>(count, [] { return kMost; });
    Key next = 0;
    expect_sorted<Key>(count, [&] { return next++; });
    expect_sorted<Key>(count, [&] { return next--; });
  }

 private:
  const int best_ = simd::chosen_target;
};

TEST_P(VectorSort, EverySizeOfASmallNetwork) {
  for (int64_t count = 0; count <= 600; ++count) {
    expect_sorted<uint32_t>(count);
    expect_sorted<uint64_t>(count);
  }
}

TEST_P(VectorSort, LargeNetworksAndQuicksort) {
  for (const int64_t count : {1000, 1025, 2047, 2048, 2049, 2113, 5000, 70'001}) {
    expect_sorted<uint32_t>(count);
    expect_sorted<uint64_t>(count);
  }
}

// Where the first samples are taken lie the greatest keys, so that they are no guide to the others.
TEST_P(VectorSort, SamplesThatMislead) {
  constexpr int64_t kCount = 20'000;
  int64_t at = 0;
  expect_sorted<uint32_t>(kCount, [&] {
    const int64_t i = at++;
    return static_cast<uint32_t>((2 * i + 1) * 64 % kCount < 200 ? 1'000'000 + i : i % 977);
  });
}

INSTANTIATE_TEST_SUITE_P(Targets, VectorSort, testing::Range(0, simd::kTargets));

}  // namespace
}  // namespace treadle
