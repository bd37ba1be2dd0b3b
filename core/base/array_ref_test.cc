// DimVector, within and beyond its inline capacity.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/base/array_ref.h"

#include <gtest/gtest.h>

#include <numeric>

namespace treadle {
namespace {

DimVector counting(size_t n) {
  DimVector v(n);
  std::iota(v.begin(), v.end(), int64_t{0});
  return v;
}

TEST(DimVector, CopiesAndMovesAtEverySize) {
  for (size_t n = 0; n < 12; ++n) {
    const DimVector original = counting(n);
    DimVector copy = original, other = counting((n + 6) % 12);
    EXPECT_EQ(copy, original);
    other = copy;
    EXPECT_EQ(other, original);
    const DimVector moved = std::move(copy);
    EXPECT_EQ(moved, original);
    EXPECT_TRUE(copy.empty());  // NOLINT: a moved-from list is empty and can be used again
    copy.push_back(7);
    EXPECT_EQ(copy, DimVector({7}));
    other = counting(3);
    EXPECT_EQ(other, DimVector({0, 1, 2}));
  }
}

TEST(DimVector, InsertsAndErases) {
  DimVector v;
  for (int64_t i = 0; i < 9; ++i) v.insert(0, i);
  EXPECT_EQ(v, DimVector({8, 7, 6, 5, 4, 3, 2, 1, 0}));
  v.erase(0);
  v.erase(7);
  v.insert(3, 50);
  EXPECT_EQ(v, DimVector({7, 6, 5, 50, 4, 3, 2, 1}));
  v.resize(2);
  v.resize(4, -1);
  EXPECT_EQ(v.vec(), (std::vector<int64_t>{7, 6, -1, -1}));
}

TEST(ArrayRef, SeesEveryKindOfList) {
  const std::vector<int64_t> vector{1, 2, 3};
  const std::array<int64_t, 3> array{1, 2, 3};
  const DimVector dims{1, 2, 3};
  EXPECT_EQ(IntList(vector), IntList(array));
  EXPECT_EQ(IntList(vector), IntList(dims));
  EXPECT_EQ(IntList(vector).slice(1), IntList(dims).slice(1, 2));
  EXPECT_TRUE(IntList().empty());
}

}  // namespace
}  // namespace treadle
