// Ranges and sums of index expressions.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/index_map.h"

#include <gtest/gtest.h>

namespace treadle::shape {
namespace {

// Of the loops (5, 7) and a target of the extent 100.
IndexFunction function_of(const char* text) {
  return index_map("test", text, DimVector{5, 7}, DimVector{100}, "x").functions[0];
}

std::string range_of(const char* text) {
  const auto range = function_of(text).result().range;
  return range ? str(range->low, " to ", range->high) : "unknown";
}

std::string sum_of(const char* text) {
  const auto sum = as_sum(function_of(text), DimVector{5, 7});
  if (!sum) return "none";
  std::string found = str(sum->constant, " ", sum->factors);
  for (const IndexSum::Table& table : sum->tables) found += str(" i", table.loop, table.values);
  return found;
}

TEST(IndexMap, RangesOfValues) {
  EXPECT_EQ(range_of("i0"), "0 to 4");
  EXPECT_EQ(range_of("i0 - i1"), "-6 to 4");
  EXPECT_EQ(range_of("-i1 * 2"), "-12 to 0");
  EXPECT_EQ(range_of("(i0 - 2) * (i1 - 3)"), "-6 to 6");
  EXPECT_EQ(range_of("(i1 - 5) // 2"), "-3 to 0");
  EXPECT_EQ(range_of("i1 // (i0 - 5)"), "-6 to 0");
  EXPECT_EQ(range_of("(i1 - 5) % 3"), "0 to 2");
  EXPECT_EQ(range_of("i0 % (i1 + 3)"), "0 to 4");
  EXPECT_EQ(range_of("i0 % -3"), "-2 to 0");
  EXPECT_EQ(range_of("xshape0 * yshape1"), "700 to 700");
}

TEST(IndexMap, RangesAreUnknownWhereAValueMayNotFit) {
  EXPECT_EQ(range_of("i0 * 2305843009213693951"), "0 to 9223372036854775804");
  EXPECT_EQ(range_of("i0 * 2305843009213693952"), "unknown");
  EXPECT_EQ(range_of("i0 * 2305843009213693952 % 3"), "unknown");
  EXPECT_EQ(range_of("i1 // i0"), "unknown");
  EXPECT_EQ(range_of("i1 % (i0 - 2)"), "unknown");
}

TEST(IndexMap, SumsOfOnePartForEachLoop) {
  EXPECT_EQ(sum_of("2 * (i0 - 3 * i1) + 1"), "1 (2, -6)");
  EXPECT_EQ(sum_of("i0 - i0"), "0 (0, 0)");
  EXPECT_EQ(sum_of("i0 % 8 + i1 // 1"), "0 (1, 1)");
  EXPECT_EQ(sum_of("(i0 + 16) % 8"), "0 (1, 0)");
  EXPECT_EQ(sum_of("i0 - 3 * (i1 // 4)"), "0 (1, 0) i1(0, 0, 0, 0, -3, -3, -3)");
  EXPECT_EQ(sum_of("i0 // 2 + i0 % 2"), "0 (0, 0) i0(0, 1, 1, 2, 2)");
  EXPECT_EQ(sum_of("i0 * i1"), "none");
  EXPECT_EQ(sum_of("(i0 + i1) % 3"), "none");
  EXPECT_EQ(sum_of("i0 * 2305843009213693951"), "none");  // differences of sums must fit, too
  EXPECT_FALSE(as_linear_sum(function_of("i0 // 2"), DimVector{5, 7}));
}

TEST(IndexMap, QuotientsRoundDown) {
  for (const int64_t a : {-7, -6, -1, 0, 1, 6, 7}) {
    for (const int64_t b : {-7, -3, -1, 1, 3, 7}) {
      const int64_t rest = floor_remainder(a, b);
      EXPECT_EQ(floor_quotient(a, b) * b + rest, a);
      EXPECT_TRUE(b > 0 ? rest >= 0 && rest < b : rest <= 0 && rest > b) << a << " " << b;
    }
  }
  EXPECT_EQ(floor_quotient(INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(floor_remainder(INT64_MIN, -1), 0);
}

}  // namespace
}  // namespace treadle::shape
