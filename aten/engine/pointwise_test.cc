// The pointwise engine through real operators: promotion, layouts, the three forms, overlap, and
// errors.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "aten/engine/copy.h"
#include "aten/ops/add.h"
#include "aten/ops/div.h"
#include "aten/ops/exp.h"
#include "aten/ops/floor_divide.h"
#include "aten/ops/logical_and.h"
#include "aten/ops/lt.h"
#include "aten/ops/mul.h"
#include "aten/ops/where.h"
#include "core/threads/parallel.h"

namespace treadle {
namespace {

// 0, 1, 2, ... converted to `t`.
Tensor counting(IntList sizes, ScalarType t) {
  const Tensor wide = empty_cpu(sizes, ScalarType::Int64);
  for (int64_t i = 0; i < wide.numel(); ++i) wide.data_as<int64_t>()[i] = i;
  Tensor result = empty_cpu(sizes, t);
  copy_strided(result, wide);
  return result;
}

std::vector<double> values(const Tensor& t) {
  const Tensor wide = empty_cpu(t.sizes(), ScalarType::Float64);
  copy_strided(wide, t);
  return {wide.data_as<double>(), wide.data_as<double>() + wide.numel()};
}

std::vector<char> bytes(const Tensor& t) {
  const Tensor dense = empty_cpu(t.sizes(), t.dtype());
  copy_strided(dense, t);
  const char* p = static_cast<const char*>(dense.data());
  return {p, p + dense.nbytes()};
}

std::string message_of(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Pointwise, PromotesByRankOfOperand) {
  const auto type = [](ScalarType a, IntList as, ScalarType b, IntList bs) {
    return aten::add(counting(as, a), counting(bs, b)).dtype();
  };
  using enum ScalarType;
  EXPECT_EQ(type(Int64, {3}, Float64, {}), Float64);
  EXPECT_EQ(type(Float32, {3}, Float64, {}), Float32);
  EXPECT_EQ(type(Float32, {3}, Float64, {3}), Float64);
  EXPECT_EQ(type(UInt8, {3}, Int8, {3}), Int16);
  EXPECT_EQ(type(Float16, {3}, BFloat16, {3}), Float32);
  EXPECT_EQ(type(Float32, {3}, Complex128, {}), Complex64);
  EXPECT_EQ(aten::add(counting({3}, Int32), Scalar(1.5)).dtype(), Float32);
  EXPECT_EQ(aten::add(counting({3}, Int32), Scalar(2)).dtype(), Int32);
  EXPECT_EQ(aten::div(counting({3}, Int32), Scalar(2)).dtype(), Float32);
  EXPECT_EQ(aten::lt(counting({3}, Int32), Scalar(2)).dtype(), Bool);
}

TEST(Pointwise, SameBitsInEveryLayout) {
  for (int64_t rows : {1, 3, 70, 600}) {
    for (int64_t cols : {1, 5, 64, 513}) {
      const Tensor base = aten::mul(counting({rows, cols}, ScalarType::Float32), Scalar(0.37));
      const Tensor expected = aten::exp(aten::mul(base, Scalar(-0.01)));
      const Tensor turned = empty_cpu({cols, rows}, ScalarType::Float32);
      const Tensor transposed = alias_with_geometry(turned, {rows, cols}, {1, rows}, 0);
      copy_strided(transposed, base);
      EXPECT_EQ(bytes(aten::exp(aten::mul(transposed, Scalar(-0.01)))), bytes(expected))
          << rows << " x " << cols;
      const Tensor wide = empty_cpu({rows, 2 * cols}, ScalarType::Float32);
      const Tensor every_other = alias_with_geometry(wide, {rows, cols}, {2 * cols, 2}, 0);
      copy_strided(every_other, base);
      EXPECT_EQ(bytes(aten::exp(aten::mul(every_other, Scalar(-0.01)))), bytes(expected))
          << rows << " x " << cols;
      const Tensor mixed = aten::add(every_other, transposed);
      EXPECT_EQ(bytes(mixed), bytes(aten::add(base, base)));
    }
  }
}

TEST(Pointwise, PermutedInputGivesPermutedResult) {
  const Tensor turned = counting({4, 3, 2}, ScalarType::Float32);
  const Tensor t = alias_with_geometry(turned, {2, 3, 4}, {1, 2, 6}, 0);
  EXPECT_EQ(aten::exp(t).strides(), t.strides());
  EXPECT_EQ(aten::add(t, counting({2, 3, 1}, ScalarType::Float32)).strides(), t.strides());
}

TEST(Pointwise, Broadcasts) {
  const Tensor a = counting({2, 1, 3}, ScalarType::Int64), b = counting({4, 1}, ScalarType::Int64);
  const Tensor c = aten::add(a, b);
  ASSERT_EQ(c.sizes(), IntList({2, 4, 3}));
  for (int64_t i = 0; i < 24; ++i)
    EXPECT_EQ(c.data_as<int64_t>()[i], i / 12 * 3 + i % 3 + i / 3 % 4);
  EXPECT_EQ(message_of([&] {
              aten::add(counting({2, 3}, ScalarType::Float32), counting({4}, ScalarType::Float32));
            }),
            "add: expected shapes that broadcast, got (2, 3) and (4,)");
  EXPECT_EQ(
      aten::add(counting({0, 3}, ScalarType::Float32), counting({3}, ScalarType::Float32)).numel(),
      0);
}

TEST(Pointwise, SixteenBitFloatsComputeInFloat) {
  const Tensor a = counting({1000}, ScalarType::Float16);
  const Tensor half = aten::mul(a, Scalar(0.1));
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(half.data_as<Half>()[i].bits,
              Half(static_cast<float>(a.data_as<Half>()[i]) * 0.1f).bits);
  }
  // A comparison sees a number rounded to the dtype.
  EXPECT_FALSE(*aten::lt(aten::mul(counting({2}, ScalarType::Float16), Scalar(0.1)), Scalar(0.1))
                    .data_as<bool>() == false);
  EXPECT_FALSE(aten::lt(aten::mul(counting({2}, ScalarType::Float16), Scalar(0.1)), Scalar(0.1))
                   .data_as<bool>()[1]);
}

TEST(Pointwise, WritesInPlaceAndOut) {
  const Tensor a = counting({5}, ScalarType::Float32);
  const uint32_t before = a.version();
  aten::add_(a, a);
  EXPECT_EQ(values(a), (std::vector<double>{0, 2, 4, 6, 8}));
  EXPECT_EQ(a.version(), before + 1);
  const Tensor wide = empty_cpu({0}, ScalarType::Float64);
  aten::add_out(a, a, Scalar(1), wide);
  EXPECT_EQ(values(wide), (std::vector<double>{0, 4, 8, 12, 16}));
  EXPECT_EQ(message_of([&] { aten::add_out(a, a, Scalar(1), empty_cpu({5}, ScalarType::Int64)); }),
            "add: expected out of a dtype that float32 can be cast to, got int64");
  EXPECT_NE(message_of([&] { aten::add_(counting({2}, ScalarType::Int64), Scalar(0.5)); }),
            "no error");
  EXPECT_NE(
      message_of([&] {
        aten::add_(counting({1, 3}, ScalarType::Float32), counting({2, 3}, ScalarType::Float32));
      }),
      "no error");
}

TEST(Pointwise, SeesOverlap) {
  const Tensor base = counting({6}, ScalarType::Float32);
  const Tensor front = alias_with_geometry(base, {5}, {1}, 0),
               back = alias_with_geometry(base, {5}, {1}, 1);
  EXPECT_NE(message_of([&] { aten::add_(front, back); }), "no error");
  EXPECT_EQ(values(base), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_NE(message_of([&] { aten::add_(alias_with_geometry(base, {4}, {0}, 0), Scalar(1)); }),
            "no error");
  // Interleaved, so that the ranges meet though no element is shared: as if through a temporary.
  const Tensor even = alias_with_geometry(base, {3}, {2}, 0),
               odd = alias_with_geometry(base, {3}, {2}, 1);
  aten::add_(even, odd);
  EXPECT_EQ(values(base), (std::vector<double>{1, 1, 5, 3, 9, 5}));
}

TEST(Pointwise, IntegersNeverTrap) {
  const Tensor a = counting({3}, ScalarType::Int32);
  EXPECT_NE(
      message_of([&] { aten::floor_divide(a, Scalar(0)); }).find("expected a non-zero divisor"),
      std::string::npos);
  const Tensor least = empty_cpu({1}, ScalarType::Int32);
  *least.data_as<int32_t>() = INT32_MIN;
  EXPECT_EQ(*aten::floor_divide(least, Scalar(-1)).data_as<int32_t>(), INT32_MIN);
}

TEST(Pointwise, TruthValues) {
  const Tensor a = counting({3}, ScalarType::Float64), b = counting({3}, ScalarType::Complex64);
  EXPECT_EQ(values(aten::logical_and(a, b)), (std::vector<double>{0, 1, 1}));
  EXPECT_EQ(values(aten::where(aten::lt(a, Scalar(1)), Scalar(7), a)),
            (std::vector<double>{7, 1, 2}));
}

TEST(Pointwise, SameBitsAtAnyNumberOfThreads) {
  const int threads = num_threads();
  const Tensor a = aten::mul(counting({300, 1001}, ScalarType::Float32), Scalar(1e-5));
  set_num_threads(1);
  const std::vector<char> one = bytes(aten::exp(a));
  for (int n : {2, 3, 8}) {
    set_num_threads(n);
    EXPECT_EQ(bytes(aten::exp(a)), one) << n;
  }
  set_num_threads(threads);
}

TEST(Pointwise, MetaTensorsGiveShapesOnly) {
  const Tensor a = empty_tensor({2, 3}, ScalarType::Int32, kMeta);
  const Tensor b = aten::div(a, Scalar(2));
  EXPECT_TRUE(b.is_meta());
  EXPECT_EQ(b.dtype(), ScalarType::Float32);
  EXPECT_NE(message_of([&] { aten::add(a, counting({3}, ScalarType::Int32)); }), "no error");
}

TEST(Copy, ConvertsAnyLayout) {
  for (ScalarType t : {ScalarType::Int8, ScalarType::Int16, ScalarType::Float32,
                       ScalarType::Float64, ScalarType::Complex128}) {
    const Tensor a = counting({130, 35}, t);
    const Tensor b = empty_cpu({35, 130}, t);
    copy_strided(alias_with_geometry(b, {130, 35}, {1, 130}, 0), a);
    const std::vector<double> from = values(a), to = values(b);
    for (int64_t i = 0; i < 130; ++i) {
      for (int64_t j = 0; j < 35; ++j)
        ASSERT_EQ(to[static_cast<size_t>(j * 130 + i)], from[static_cast<size_t>(i * 35 + j)]);
    }
  }
  const Tensor extremes = empty_cpu({4}, ScalarType::Float32);
  const float x[] = {NAN, INFINITY, -INFINITY, 1e20f};
  std::memcpy(extremes.data(), x, sizeof(x));
  const Tensor whole = empty_cpu({4}, ScalarType::Int64);
  copy_strided(whole, extremes);
  EXPECT_EQ(whole.data_as<int64_t>()[1], INT64_MAX);
  EXPECT_EQ(whole.data_as<int64_t>()[2], INT64_MIN);
}

TEST(Copy, OverlappingAsIfThroughATemporary) {
  const Tensor base = counting({6}, ScalarType::Int64);
  copy_strided(alias_with_geometry(base, {5}, {1}, 1), alias_with_geometry(base, {5}, {1}, 0));
  EXPECT_EQ(values(base), (std::vector<double>{0, 0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace treadle
