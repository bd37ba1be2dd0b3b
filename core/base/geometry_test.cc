// Shapes that broadcast, strides without gaps, and flat indices there and back.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/base/geometry.h"

#include <gtest/gtest.h>

namespace treadle {
namespace {

TEST(Geometry, ShapesBroadcast) {
  EXPECT_EQ(broadcast_shape({3, 1}, {4}), (DimVector{3, 4}));
  EXPECT_EQ(broadcast_shape({4}, {2, 1, 1}), (DimVector{2, 1, 4}));
  EXPECT_EQ(broadcast_shape({}, {2}), (DimVector{2}));
  EXPECT_EQ(broadcast_shape({0, 1}, {1, 5}), (DimVector{0, 5}));
  EXPECT_EQ(broadcast_shape({2, 3}, {2, 4}), std::nullopt);
  EXPECT_EQ(broadcast_shape({0}, {2}), std::nullopt);
}

TEST(Geometry, ShapesExpand) {
  EXPECT_TRUE(is_expandable_to({1, 3}, {2, 4, 3}));
  EXPECT_FALSE(is_expandable_to({2, 4, 3}, {4, 3}));
  EXPECT_FALSE(is_expandable_to({2}, {1}));
}

TEST(Geometry, StridesOfWhatIsBroadcastAreZero) {
  EXPECT_EQ(broadcast_strides({3, 4}, {4}, {1}), (DimVector{0, 1}));
  EXPECT_EQ(broadcast_strides({3, 4}, {3, 1}, {7, 9}), (DimVector{7, 0}));
  EXPECT_EQ(broadcast_strides({3, 1}, {3, 1}, {7, 9}), (DimVector{7, 9}));
}

TEST(Geometry, StridesWithoutGaps) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (DimVector{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (DimVector{4, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), DimVector());
  EXPECT_EQ(dense_strides({2, 3, 4}, {0, 2, 1}), (DimVector{12, 1, 3}));
}

TEST(Geometry, AShapeAlongOneDimension) {
  const DimSlices s = dim_slices({2, 3, 4, 5}, -2);
  EXPECT_EQ(s.outer, 6);
  EXPECT_EQ(s.size, 4);
  EXPECT_EQ(s.inner, 5);
  EXPECT_EQ(dim_slices({}, 0).count(), 1);
  EXPECT_EQ(product({2, 0, 4}), 0);
}

TEST(Geometry, FlatIndices) {
  const DimVector sizes{2, 3, 4}, strides{100, 10, 1};
  DimVector row = unravel(sizes, 0);
  for (int64_t flat = 0; flat < 24; ++flat) {
    const DimVector index = unravel(sizes, flat);
    EXPECT_EQ(index, (DimVector{flat / 12, flat / 4 % 3, flat % 4}));
    EXPECT_EQ(offset_at(sizes, strides, flat), offset_of(strides, index.data()));
    if (flat % 4 != 0) continue;
    EXPECT_EQ(row, index);
    next_row(sizes, row.data());
  }
  EXPECT_EQ(row, (DimVector{0, 0, 0}));  // past the last row is the first
  EXPECT_EQ(offset_at({}, {}, 0), 0);
}

}  // namespace
}  // namespace treadle
