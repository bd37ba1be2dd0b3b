// Geometry of tensors, checks on sizes and dims, versions, and typed access.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/tensor/tensor.h"

#include <gtest/gtest.h>

#include "core/tensor/tensor_accessor.h"

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

TEST(Tensor, NewTensorsAreContiguous) {
  const Tensor t = empty_cpu({2, 3, 4}, ScalarType::Int16);
  EXPECT_EQ(t.strides(), IntList({12, 4, 1}));
  EXPECT_EQ(t.numel(), 24);
  EXPECT_EQ(t.nbytes(), 48);
  EXPECT_EQ(t.size(-1), 4);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(to_string(t), "int16[2, 3, 4]");
  EXPECT_EQ(empty_cpu({}, ScalarType::Bool).numel(), 1);
  EXPECT_EQ(empty_cpu({3, 0, 5}, ScalarType::Bool).numel(), 0);
  EXPECT_EQ(empty_cpu({2, 3, 4, 5, 6, 7}, ScalarType::Bool).strides(),
            IntList({2520, 840, 210, 42, 7, 1}));
  EXPECT_EQ(to_string(Tensor()), "None");
}

TEST(Tensor, SizesAreChecked) {
  constexpr int64_t big = int64_t{1} << 62;
  EXPECT_EQ(error_of([] {
              empty_cpu({2, -1}, ScalarType::Float32);
            }),
            "expected sizes >= 0, got sizes = (2, -1)");
  for (const DimVector& sizes : {DimVector{big, 4}, DimVector{big, big, 0}, DimVector{big}}) {
    EXPECT_NE(error_of([&] {
                empty_tensor(sizes, ScalarType::Float32, kMeta);
              }).find("counted in 63 bits"),
              std::string::npos);
  }
  EXPECT_EQ(empty_tensor({big}, ScalarType::Bool, kMeta).numel(), big);
  EXPECT_NE(error_of([] {
              empty_cpu({int64_t{1} << 58}, ScalarType::Float32);
            }).find("the system refused"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              empty_strided_tensor({2}, {big}, ScalarType::Float64, kMeta);
            }).find("63 bits"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              empty_strided_tensor({2}, {-1}, ScalarType::Float64, kCPU);
            }).find("strides >= 0"),
            std::string::npos);
  EXPECT_EQ(empty_strided_tensor({2, 3}, {1, 2}, ScalarType::Float32, kCPU).storage()->nbytes(),
            24u);
}

TEST(Tensor, ViewsStayInsideTheirStorage) {
  const Tensor t = empty_cpu({4, 3}, ScalarType::Float32);
  const auto geometry = [&](IntList sizes, IntList strides, int64_t offset) {
    return error_of([&] { alias_with_geometry(t, sizes, strides, offset); });
  };
  EXPECT_EQ(geometry({3, 4}, {1, 3}, 0), "no error");
  EXPECT_EQ(geometry({12}, {-1}, 11), "no error");
  EXPECT_EQ(geometry({5, 12}, {0, 1}, 0), "no error");
  EXPECT_EQ(geometry({0}, {1}, 12), "no error");
  EXPECT_EQ(geometry({13}, {1}, 0),
            "expected a view inside its storage of 12 elements, got sizes = (13,), strides = (1,), "
            "offset = 0");
  EXPECT_NE(geometry({1}, {1}, 12), "no error");
  EXPECT_NE(geometry({1}, {1}, -1), "no error");
  EXPECT_NE(geometry({2}, {-1}, 0), "no error");
  EXPECT_NE(geometry({3}, {INT64_MAX}, 0), "no error");
  EXPECT_NE(geometry({3}, {INT64_MIN}, 0), "no error");
  EXPECT_NE(geometry({3, 3}, {INT64_MAX / 2, INT64_MAX / 2}, 5), "no error");
  EXPECT_NE(geometry({1}, {1}, INT64_MAX), "no error");
  EXPECT_NE(geometry({2, 2}, {1}, 0), "no error");
  EXPECT_NE(geometry({int64_t{1} << 40, int64_t{1} << 40}, {0, 0}, 0), "no error");
  EXPECT_FALSE(alias_with_geometry(t, {3, 4}, {1, 3}, 0).is_contiguous());
  EXPECT_TRUE(alias_with_geometry(t, {1, 3}, {100, 1}, 0).is_contiguous());
}

TEST(Tensor, ViewsShareTheVersion) {
  const Tensor t = empty_cpu({4}, ScalarType::Float32);
  const Tensor view = alias_with_geometry(t, {2}, {1}, 1);
  view.impl()->bump_version();
  EXPECT_EQ(t.version(), 1u);
  const Tensor data = alias_with_geometry(t, {4}, {1}, 0);
  data.impl()->detach_version();
  const Tensor view_of_data = alias_with_geometry(data, {4}, {1}, 0);
  view_of_data.impl()->bump_version();
  EXPECT_EQ(t.version(), 1u);
  EXPECT_EQ(data.version(), 1u);
  t.impl()->bump_version();
  EXPECT_EQ(view.version(), 2u);
  EXPECT_EQ(data.version(), 1u);
}

TEST(Tensor, DimsWrap) {
  EXPECT_EQ(wrap_dim("sum", -1, 3), 2);
  EXPECT_EQ(wrap_dim("sum", -1, 0), 0);
  EXPECT_EQ(error_of([] { wrap_dim("sum", 5, 2); }),
            "sum: Dimension out of range (expected to be in range of [-2, 1], but got 5)");
  EXPECT_EQ(wrap_dims("sum", DimVector{-1, 0}, 3, false), DimVector({2, 0}));
  EXPECT_EQ(wrap_dims("sum", std::nullopt, 2, false), DimVector({0, 1}));
  EXPECT_EQ(wrap_dims("sum", IntList(), 2, true), DimVector({0, 1}));
  EXPECT_EQ(wrap_dims("sum", IntList(), 2, false), DimVector());
  EXPECT_EQ(error_of([] {
              wrap_dims("sum", DimVector{1, -1}, 2, false);
            }),
            "sum: dim 1 appears multiple times in the list of dims (1, -1)");
}

TEST(Tensor, HandlesCountReferences) {
  Tensor t = empty_cpu({1}, ScalarType::Float32);
  const Tensor u = t;
  EXPECT_TRUE(t.is_same(u));
  EXPECT_EQ(t.impl()->use_count(), 2);
  t.reset();
  EXPECT_FALSE(t.defined());
  EXPECT_EQ(u.impl()->use_count(), 1);
}

TEST(TensorAccessor, ReadsAndWritesThroughStrides) {
  const Tensor t = empty_cpu({2, 3}, ScalarType::Float32);
  auto a = accessor<float, 2>("trace", t);
  for (int64_t i = 0; i < a.size(0); ++i)
    for (int64_t j = 0; j < a.size(1); ++j) a[i][j] = static_cast<float>(10 * i + j);
  const Tensor transposed = alias_with_geometry(t, {3, 2}, {1, 3}, 0);
  const auto b = accessor<const float, 2>("trace", transposed);
  EXPECT_EQ(b[2][1], 12.0f);
  EXPECT_EQ(b.stride(0), 1);
}

TEST(TensorAccessor, ChecksWhatItIsMadeFor) {
  const Tensor t = empty_cpu({2, 3}, ScalarType::Float32);
  EXPECT_EQ(error_of([&] { accessor<double, 2>("trace", t); }),
            "trace: expected a tensor of dtype treadle.float64, got treadle.float32");
  EXPECT_EQ(error_of([&] { accessor<float, 3>("trace", t); }),
            "trace: expected a tensor with 3 dimensions, got 2");
  EXPECT_NE(error_of([&] {
              accessor<float, 1>("trace", empty_tensor({2}, ScalarType::Float32, kMeta));
            }).find("meta"),
            std::string::npos);
}

}  // namespace
}  // namespace treadle
