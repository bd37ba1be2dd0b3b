// Overlap of tensors: over one storage, and over two that wrap the same memory.
//
// SPDX-License-Identifier: Apache-2.0

#include "aten/engine/overlap.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace treadle {
namespace {

alignas(64) char memory[256];

// `count` int16 elements from a byte of the memory on, in a storage of their own.
Tensor over(size_t byte, int64_t count) {
  return Tensor(make_intrusive<TensorImpl>(
      make_intrusive<StorageImpl>(memory + byte, static_cast<size_t>(count) * 2, kCPU, nullptr),
      ScalarType::Int16, IntList(&count, 1)));
}

TEST(Overlap, IsDecidedByAddresses) {
  EXPECT_EQ(overlap_of(over(0, 8), over(0, 8)), Overlap::Full);
  EXPECT_EQ(overlap_of(over(0, 8), over(2, 8)), Overlap::Partial);
  EXPECT_EQ(overlap_of(over(2, 8), over(0, 8)), Overlap::Partial);
  EXPECT_EQ(overlap_of(over(0, 8), over(0, 4)), Overlap::Partial);
  EXPECT_EQ(overlap_of(over(0, 8), over(16, 8)), Overlap::None);
  EXPECT_EQ(overlap_of(over(16, 8), over(0, 8)), Overlap::None);
  EXPECT_EQ(overlap_of(over(0, 8), over(0, 0)), Overlap::None);
  const Tensor every_second = alias_with_geometry(over(0, 16), {8}, {2}, 0);
  EXPECT_EQ(overlap_of(every_second, over(2, 8)), Overlap::Unknown);
  EXPECT_EQ(overlap_of(every_second, over(32, 8)), Overlap::None);
  const Tensor backwards = alias_with_geometry(over(0, 8), {8}, {-1}, 7);
  EXPECT_TRUE(meets(backwards, over(0, 1)));
  EXPECT_TRUE(meets(backwards, over(14, 1)));
  EXPECT_FALSE(meets(backwards, over(16, 1)));
  const Tensor bytes = alias_as(over(0, 8), ScalarType::UInt8, {16}, {1}, 0);
  EXPECT_EQ(overlap_of(bytes, over(0, 8)), Overlap::Partial);
}

TEST(Overlap, OfElementsThatMeetOrLeaveGapsIsNotDense) {
  // As many bytes as its range, and yet the odd elements are not in it.
  const Tensor gaps = alias_with_geometry(over(0, 9), {3, 3}, {2, 2}, 0);
  EXPECT_EQ(overlap_of(gaps, over(0, 9)), Overlap::Unknown);
  const Tensor turned = alias_with_geometry(over(0, 6), {2, 3}, {1, 2}, 0);
  EXPECT_EQ(overlap_of(turned, over(2, 6)), Overlap::Partial);
}

TEST(Overlap, OnTheMetaDeviceIsThatOfOneStorage) {
  const Tensor t = empty_tensor({8}, ScalarType::Int16, kMeta);
  EXPECT_EQ(overlap_of(t, t), Overlap::Full);
  EXPECT_EQ(overlap_of(t, alias_with_geometry(t, {7}, {1}, 1)), Overlap::Partial);
  EXPECT_EQ(overlap_of(t, empty_tensor({8}, ScalarType::Int16, kMeta)), Overlap::None);
}

}  // namespace
}  // namespace treadle
