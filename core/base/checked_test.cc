// Sums and products of sizes at the ends of their range.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/base/checked.h"

#include <gtest/gtest.h>

namespace treadle {
namespace {

TEST(Checked, ComputesWhatFits) {
  const Checked end = Checked(2) + Checked(5 - 1) * -3 - 1;
  EXPECT_TRUE(end.fits());
  EXPECT_EQ(end.value(), -11);
  EXPECT_EQ(end.value_or(7), -11);
  EXPECT_EQ((Checked(INT64_MAX) + INT64_MIN).value(), -1);
}

TEST(Checked, NoticesOverflowInEitherDirection) {
  EXPECT_FALSE((Checked(INT64_MAX) + 1).fits());
  EXPECT_FALSE((Checked(INT64_MIN) + -1).fits());
  EXPECT_FALSE((Checked(INT64_MIN) - 1).fits());
  EXPECT_FALSE((Checked(0) - INT64_MIN).fits());
  EXPECT_FALSE((Checked(int64_t{1} << 62) * 2).fits());
  EXPECT_FALSE((Checked(INT64_MIN) * -1).fits());
  EXPECT_EQ((Checked(INT64_MAX) * 2).value_or(1), 1);
}

TEST(Checked, RemembersAnOverflowOfAPart) {
  const Checked over = Checked(INT64_MAX) + 1;
  EXPECT_FALSE((over - over).fits());
  EXPECT_FALSE((over * 0).fits());
  Checked sum = over;
  sum += 1;
  sum *= 0;
  EXPECT_FALSE(sum.fits());
}

}  // namespace
}  // namespace treadle
