// Factories, copies and fills: values, formats, limits.
//
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cmath>

#include "aten/ops/arange.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/copy_.h"
#include "aten/ops/empty.h"
#include "aten/ops/empty_like.h"
#include "aten/ops/eye.h"
#include "aten/ops/fill_.h"
#include "aten/ops/full.h"
#include "aten/ops/item.h"
#include "aten/ops/linspace.h"
#include "aten/ops/meshgrid.h"
#include "aten/ops/select.h"
#include "aten/ops/slice.h"
#include "aten/ops/to.h"
#include "aten/ops/transpose.h"
#include "aten/ops/tril.h"
#include "aten/ops/tril_indices.h"
#include "aten/ops/triu_indices.h"
#include "aten/ops/zeros.h"

namespace treadle {
namespace {

std::string error_of(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

template <class T>
std::vector<T> values(const Tensor& t) {
  const Tensor c = aten::contiguous(t);
  return std::vector<T>(c.data_as<T>(), c.data_as<T>() + c.numel());
}
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

TEST(Arange, CountsUpAndDown) {
  EXPECT_EQ(values<int64_t>(aten::arange(4)), (Ints{0, 1, 2, 3}));
  EXPECT_EQ(values<int64_t>(aten::arange(5, -2, -3)), (Ints{5, 2, -1}));
  EXPECT_EQ(values<float>(aten::arange(0, 1, 0.25)), (Floats{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(aten::arange(INT64_MIN, INT64_MAX, INT64_MAX).numel(), 3);
  EXPECT_EQ(aten::arange(3, 3, 1).numel(), 0);
  EXPECT_EQ(aten::arange(7, ScalarType::Float16).dtype(), ScalarType::Float16);
}

TEST(Arange, RefusesWhatHasNoEnd) {
  EXPECT_EQ(error_of([] { aten::arange(0, 5, 0); }), "arange: expected step != 0, got step = 0");
  EXPECT_EQ(
      error_of([] { aten::arange(0, 5, -1); }),
      "arange: expected a step that leads from start to end, got start = 0, end = 5, step = -1");
  EXPECT_NE(error_of([] { aten::arange(0, INFINITY, 1); }).find("finite"), std::string::npos);
  EXPECT_NE(error_of([] { aten::arange(0, NAN, 1); }).find("finite"), std::string::npos);
  EXPECT_NE(error_of([] { aten::arange(0, 1e300, 1e-300); }), "no error");
  EXPECT_NE(error_of([] { aten::arange(INT64_MIN, INT64_MAX, 1); }), "no error");
}

TEST(Linspace, HitsBothEnds) {
  EXPECT_EQ(values<float>(aten::linspace(0, 1, 5)), (Floats{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(values<float>(aten::linspace(3, 9, 1)), (Floats{3}));
  EXPECT_EQ(aten::linspace(3, 9, 0).numel(), 0);
  EXPECT_EQ(values<float>(aten::linspace(0.1, 0.7, 1001)).back(), 0.7f);
  EXPECT_NE(error_of([] { aten::linspace(0, 1, -1); }), "no error");
}

TEST(Creation, MakesMatrices) {
  EXPECT_EQ(values<int64_t>(aten::eye(2, 3, ScalarType::Int64)), (Ints{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(values<int64_t>(aten::tril(aten::full({2, 3}, 7), 0)), (Ints{7, 0, 0, 7, 7, 0}));
  EXPECT_EQ(values<int64_t>(aten::tril(aten::full({2, 3}, 7), INT64_MIN)), Ints(6, 0));
  EXPECT_EQ(values<int64_t>(aten::tril_indices(3, 2)), (Ints{0, 1, 1, 2, 2, 0, 0, 1, 0, 1}));
  EXPECT_EQ(values<int64_t>(aten::triu_indices(2, 3, 1)), (Ints{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(aten::tril_indices(int64_t{1} << 31, 0).numel(), 0);
  EXPECT_EQ(aten::triu_indices(5, 5, INT64_MAX).numel(), 0);
  EXPECT_EQ(aten::triu_indices(5, 5, INT64_MIN).numel(), 50);
  for (int64_t offset = -6; offset < 7; ++offset) {
    EXPECT_EQ(
        aten::tril_indices(4, 5, offset).size(1) + aten::triu_indices(4, 5, offset + 1).size(1), 20)
        << offset;
  }
}

TEST(Creation, RefusesWhatCannotBe) {
  EXPECT_EQ(error_of([] {
              aten::zeros({2, -1});
            }),
            "zeros: expected size >= 0, got size = (2, -1)");
  EXPECT_NE(error_of([] { aten::zeros({int64_t{1} << 62}); }), "no error");
  EXPECT_NE(error_of([] { aten::full({2}, 300, ScalarType::UInt8); }), "no error");
  EXPECT_NE(error_of([] { aten::zeros({2}, std::nullopt, std::nullopt, std::nullopt, true); }),
            "no error");
  EXPECT_NE(error_of([] {
              aten::zeros({2}, std::nullopt, std::nullopt, Device{DeviceType::CUDA, 0});
            }),
            "no error");
}

TEST(Creation, KeepsFormats) {
  const Tensor image = aten::empty({2, 3, 4, 5}, std::nullopt, std::nullopt, std::nullopt,
                                   std::nullopt, MemoryFormat::ChannelsLast);
  EXPECT_EQ(image.strides(), IntList({60, 1, 15, 3}));
  EXPECT_EQ(aten::empty_like(image).strides(), image.strides());
  EXPECT_EQ(aten::contiguous(image).strides(), IntList({60, 20, 5, 1}));
  EXPECT_TRUE(aten::contiguous(image, MemoryFormat::ChannelsLast).is_same(image));
  const Tensor row = aten::slice(aten::zeros({4, 6}), 1, 0, 6, 2);
  EXPECT_TRUE(aten::empty_like(row).is_contiguous());
  EXPECT_NE(error_of([] {
              aten::empty({2}, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                          MemoryFormat::ChannelsLast);
            }),
            "no error");
}

TEST(Copy, ConvertsAndBroadcasts) {
  const Tensor to = aten::zeros({2, 3});
  const uint32_t before = to.version();
  aten::copy_(to, aten::arange(3));
  EXPECT_EQ(values<float>(to), (Floats{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(to.version(), before + 1);
  EXPECT_EQ(error_of([&] { aten::copy_(to, aten::arange(2)); }),
            "copy_: expected src that broadcasts to sizes (2, 3), got src of sizes (2,)");
  EXPECT_NE(error_of([&] { aten::copy_(to, aten::empty({3}, std::nullopt, std::nullopt, kMeta)); }),
            "no error");
  EXPECT_TRUE(aten::to(to, ScalarType::Float32).is_same(to));
  EXPECT_FALSE(aten::to(to, ScalarType::Float32, false, true).is_same(to));
  EXPECT_TRUE(aten::to(to, kMeta, ScalarType::Float64).is_meta());
}

TEST(Copy, HandlesOverlap) {
  const Tensor t = aten::arange(6);
  aten::copy_(aten::slice(t, 0, 1), aten::slice(t, 0, 0, 5));
  EXPECT_EQ(values<int64_t>(t), (Ints{0, 0, 1, 2, 3, 4}));
  const Tensor m = aten::zeros({2, 2});
  m.data_as<float>()[1] = 5;
  aten::copy_(m, aten::transpose(m, 0, 1));
  EXPECT_EQ(values<float>(m), (Floats{0, 0, 5, 0}));
}

TEST(Fill, WritesThroughStrides) {
  const Tensor t = aten::zeros({3, 4});
  aten::fill_(aten::select(t, 1, 2), 9);
  EXPECT_EQ(values<float>(t), (Floats{0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 9, 0}));
  aten::fill_(t, aten::full({}, 2.5));
  EXPECT_EQ(aten::item(aten::select(aten::select(t, 0, 1), 0, 1)).to<double>(), 2.5);
  EXPECT_NE(error_of([] { aten::fill_(aten::zeros({2}, ScalarType::Int8), 1000); }), "no error");
}

TEST(Meshgrid, FollowsItsIndexing) {
  const Tensor x = aten::arange(3), y = aten::arange(2);
  const Tensor both[] = {x, y};
  EXPECT_EQ(aten::meshgrid(both)[0].sizes(), IntList({3, 2}));
  EXPECT_EQ(values<int64_t>(aten::meshgrid(both, "xy")[0]), (Ints{0, 1, 2, 0, 1, 2}));
  EXPECT_NE(error_of([&] { aten::meshgrid(both, "yx"); }), "no error");
}

}  // namespace
}  // namespace treadle
