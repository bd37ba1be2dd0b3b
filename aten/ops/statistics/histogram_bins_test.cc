// The assumptions of kernels about equal bins.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/statistics/histogram_bins.h"

#include <gtest/gtest.h>

namespace treadle {
namespace {

constexpr double kLeast = std::numeric_limits<double>::denorm_min();
constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(EqualBins, HoldTheirLowerEndAndTheLastBoth) {
  const EqualBins bins(0, 4, 4);
  EXPECT_EQ(bins.of(0), 0);
  EXPECT_EQ(bins.of(0.99), 0);
  EXPECT_EQ(bins.of(1), 1);
  EXPECT_EQ(bins.of(4), 3);
}

TEST(EqualBins, LeaveOutWhatIsOutside) {
  const EqualBins bins(-1, 1, 3);
  for (const double v : {-1.01, 1.01, kNaN, kMax, -kMax}) EXPECT_EQ(bins.of(v), -1) << v;
}

TEST(EqualBins, OfTheWidestAndTheNarrowestRange) {
  const EqualBins wide(-kMax, kMax, 2);
  EXPECT_EQ(wide.of(-kMax), 0);
  EXPECT_EQ(wide.of(0), 1);
  EXPECT_EQ(wide.of(kMax), 1);
  const EqualBins narrow(0, kLeast, 10);
  EXPECT_EQ(narrow.of(0), 0);
  EXPECT_EQ(narrow.of(kLeast), 9);
}

TEST(EqualBins, AreAroundOneNumber) {
  const EqualBins bins(3, 3, 4);
  EXPECT_EQ(bins.of(2), 0);
  EXPECT_EQ(bins.of(3), 2);
  EXPECT_EQ(bins.of(4), 3);
}

TEST(EqualBins, RefuseRangesWithoutWidth) {
  EXPECT_THROW(EqualBins(2, 1, 4), Error);
  EXPECT_THROW(EqualBins(0, std::numeric_limits<double>::infinity(), 4), Error);
  EXPECT_THROW(EqualBins(kNaN, kNaN, 4), Error);
  EXPECT_THROW(EqualBins(kMax, kMax, 4), Error);  // 1 is lost beside it
}

}  // namespace
}  // namespace treadle
