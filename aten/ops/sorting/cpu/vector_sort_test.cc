// Vector sort, on every target of this machine, against the C++ library: at all sizes for which the
// network has a special case, and beyond. No other memory is written.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/sorting/cpu/vector_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "aten/backend/cpu/testing_targets.h"
#include "aten/ops/sorting/cpu/sort_key.h"

namespace treadle {
namespace {

class VectorSort : public testing::TestWithParam<int64_t> {
 protected:
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
    constexpr Key kMax = std::numeric_limits<Key>::max();
    expect_sorted<Key>(count, [&] { return static_cast<Key>(random()); });
    expect_sorted<Key>(count, [&] { return static_cast<Key>(random() % 3); });
    expect_sorted<Key>(count, [&] { return static_cast<Key>(kMax - random() % 2); });
    expect_sorted<Key>(count, [] { return kMax; });
    Key next = 0;
    expect_sorted<Key>(count, [&] { return next++; });
    expect_sorted<Key>(count, [&] { return next--; });
  }

 private:
  const simd::OnTarget on_target_{GetParam()};
};

TEST_P(VectorSort, EverySizeOfASmallNetwork) {
  for (int64_t count = 0; count <= 600; ++count) {
    expect_sorted<uint32_t>(count);
    expect_sorted<uint64_t>(count);
  }
}

TEST_P(VectorSort, LargeNetworksAndQuicksort) {
  for (const int64_t count : {1000, 1025, 2047, 2048, 2049, 2113, 5000, 70'001, 200'003}) {
    expect_sorted<uint32_t>(count);
    expect_sorted<uint64_t>(count);
  }
}

// The greatest keys lie where the first samples are taken, so the samples do not represent the
// others.
TEST_P(VectorSort, SamplesThatMislead) {
  constexpr int64_t kCount = 20'000;
  int64_t at = 0;
  expect_sorted<uint32_t>(kCount, [&] {
    const int64_t i = at++;
    return static_cast<uint32_t>((2 * i + 1) * 64 % kCount < 200 ? 1'000'000 + i : i % 977);
  });
}

// The written rows of values, by the keys of one value at a time.
template <class T>
void expect_sorted_values(int64_t rows, int64_t size, bool descending) {
  using cpu::KeyType;
  std::mt19937_64 random(static_cast<uint64_t>(rows * size));
  std::normal_distribution<T> normal;
  const T special[] = {std::numeric_limits<T>::quiet_NaN(),
                       -std::numeric_limits<T>::quiet_NaN(),
                       std::numeric_limits<T>::infinity(),
                       -std::numeric_limits<T>::infinity(),
                       T{0},
                       -T{0}};
  const size_t count = static_cast<size_t>(rows * size);
  std::vector<T> from(count), to(count + 1, T{7});
  for (T& value : from) value = random() % 8 ? normal(random) : special[random() % 6];
  std::vector<KeyType<T>> wanted(count);
  for (size_t i = 0; i < count; ++i) wanted[i] = cpu::value_key(from[i], descending);
  for (int64_t row = 0; row < rows; ++row)
    std::sort(wanted.begin() + row * size, wanted.begin() + (row + 1) * size);
  cpu::vector_sort(from.data(), to.data(), rows, size, descending);
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(std::bit_cast<KeyType<T>>(to[i]),
              std::bit_cast<KeyType<T>>(cpu::value_of_key<T>(wanted[i], descending)))
        << rows << " rows of " << size << ", at " << i;
  }
  ASSERT_EQ(to.back(), T{7});
}

TEST_P(VectorSort, RowsOfValues) {
  for (const bool descending : {false, true}) {
    for (const int64_t size :
         {1, 2, 3, 17, 64, 255, 256, 1000, 2048, 2049, 2050, 2113, 4099, 70'001, 200'003}) {
      for (const int64_t rows : {1, 3, 40}) {
        if (size > 10'000 && rows > 3) continue;
        expect_sorted_values<float>(rows, size, descending);
        expect_sorted_values<double>(rows, size, descending);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, VectorSort,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

}  // namespace
}  // namespace treadle
