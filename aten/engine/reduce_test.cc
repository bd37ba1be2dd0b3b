// The reduction engine through real operators: every set of dims against a plain loop, in several
// layouts; accuracy; bits.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "aten/engine/copy.h"
#include "aten/ops/amax.h"
#include "aten/ops/any.h"
#include "aten/ops/mean.h"
#include "aten/ops/prod.h"
#include "aten/ops/sum.h"
#include "core/threads/parallel.h"

namespace treadle {
namespace {

Tensor filled(IntList sizes, ScalarType t) {
  const Tensor wide = empty_cpu(sizes, ScalarType::Int64);
  for (int64_t i = 0; i < wide.numel(); ++i) wide.data_as<int64_t>()[i] = i * 7919 % 11 - 3;
  Tensor result = empty_cpu(sizes, t);
  copy_strided(result, wide);
  return result;
}

std::vector<double> values(const Tensor& t) {
  const Tensor wide = empty_cpu(t.sizes(), ScalarType::Float64);
  copy_strided(wide, t);
  return {wide.data_as<double>(), wide.data_as<double>() + wide.numel()};
}

// Folds in index order; small integers, so that every order gives the same number.
std::vector<double> plain(const Tensor& t, int mask, double start, double (*step)(double, double)) {
  const std::vector<double> in = values(t);
  int64_t outputs = 1;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (!(mask >> d & 1)) outputs *= t.sizes()[static_cast<size_t>(d)];
  }
  std::vector<double> out(static_cast<size_t>(outputs), start);
  std::vector<int64_t> index(static_cast<size_t>(t.dim()));
  for (double x : in) {
    int64_t o = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      if (!(mask >> d & 1)) o = o * t.sizes()[d] + index[d];
    }
    double& acc = out[static_cast<size_t>(o)];
    acc = step(acc, x);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < t.sizes()[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

void check_all_dims(const Tensor& t) {
  for (int mask = 1; mask < 1 << t.dim(); ++mask) {
    DimVector dims;
    int64_t folded = 1;
    for (int64_t d = 0; d < t.dim(); ++d) {
      if (!(mask >> d & 1)) continue;
      dims.push_back(d);
      folded *= t.sizes()[static_cast<size_t>(d)];
    }
    const std::vector<double> sums = plain(t, mask, 0, [](double a, double x) { return a + x; });
    EXPECT_EQ(values(aten::sum(t, OptionalIntList(dims), mask & 1)), sums)
        << to_string(t) << " dims " << str(dims);
    EXPECT_EQ(values(aten::any(t, OptionalIntList(dims))),
              plain(t, mask, 0, [](double a, double x) { return double(a || x); }));
    if (folded == 0) continue;
    EXPECT_EQ(values(aten::amax(t, dims)),
              plain(t, mask, -HUGE_VAL, [](double a, double x) { return std::max(a, x); }))
        << to_string(t) << " dims " << str(dims);
  }
}

TEST(Reduce, EverySetOfDims) {
  const std::vector<std::vector<int64_t>> shapes = {
      {5},        {0},           {3, 4},     {100, 3},   {3, 1000},  {1000, 70},
      {7, 60, 5}, {5, 1, 9, 33}, {2, 70000}, {70000, 2}, {9000, 20}, {3, 0, 2}};
  for (const auto& shape : shapes) {
    for (ScalarType t : {ScalarType::Float32, ScalarType::Float64, ScalarType::Int32}) {
      const Tensor a = filled(shape, t);
      check_all_dims(a);
      DimVector sizes(a.sizes()), strides(a.strides());
      std::reverse(sizes.begin(), sizes.end());
      std::reverse(strides.begin(), strides.end());
      check_all_dims(alias_with_geometry(a, sizes, strides, 0));
    }
  }
}

TEST(Reduce, DtypesOfResults) {
  using enum ScalarType;
  EXPECT_EQ(aten::sum(filled({3}, Int8)).dtype(), Int64);
  EXPECT_EQ(aten::sum(filled({3}, Float16)).dtype(), Float16);
  EXPECT_EQ(aten::sum(filled({3}, Float16), Float64).dtype(), Float64);
  EXPECT_EQ(aten::prod(filled({3}, Bool)).dtype(), Int64);
  EXPECT_EQ(aten::any(filled({3}, Float32)).dtype(), Bool);
  EXPECT_EQ(aten::any(filled({3}, UInt8)).dtype(), UInt8);
  EXPECT_THROW(aten::mean(filled({3}, Int64)), Error);
  EXPECT_EQ(aten::mean(filled({3}, Int64), Float32).dtype(), Float32);
}

TEST(Reduce, NothingToFold) {
  EXPECT_EQ(values(aten::sum(filled({0}, ScalarType::Float32))), std::vector<double>{0});
  EXPECT_EQ(values(aten::prod(filled({0}, ScalarType::Float32))), std::vector<double>{1});
  EXPECT_TRUE(std::isnan(values(aten::mean(filled({0}, ScalarType::Float32)))[0]));
  try {
    aten::amax(filled({0, 3}, ScalarType::Float32), {0});
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "amax: expected a non-empty dimension to reduce, got shape (0, 3)");
  }
  EXPECT_EQ(aten::amax(filled({0, 3}, ScalarType::Float32), {1}).numel(), 0);
}

TEST(Reduce, LongSumsStayAccurate) {
  const Tensor tenths = empty_cpu({1 << 24}, ScalarType::Float32);
  std::fill_n(tenths.data_as<float>(), tenths.numel(), 0.1f);
  EXPECT_NEAR(*aten::sum(tenths).data_as<float>(), static_cast<double>(0.1f) * (1 << 24), 0.5);
  const Tensor columns = alias_with_geometry(tenths, {1 << 20, 16}, {16, 1}, 0);
  for (double v : values(aten::sum(columns, OptionalIntList(IntList({0})))))
    EXPECT_NEAR(v, static_cast<double>(0.1f) * (1 << 20), 0.05);
}

TEST(Reduce, NaNReachesTheMaximum) {
  const Tensor a = filled({1000}, ScalarType::Float32);
  a.data_as<float>()[777] = NAN;
  EXPECT_TRUE(std::isnan(*aten::amax(a).data_as<float>()));
}

TEST(Reduce, SameBitsAtAnyNumberOfThreads) {
  const int threads = num_threads();
  const Tensor a = empty_cpu({1001, 333}, ScalarType::Float32);
  for (int64_t i = 0; i < a.numel(); ++i) a.data_as<float>()[i] = std::sin(static_cast<float>(i));
  const auto run = [&] {
    std::vector<double> all = values(aten::sum(a));
    for (int64_t d : {0, 1}) {
      for (double v : values(aten::sum(a, OptionalIntList(IntList(&d, 1))))) all.push_back(v);
    }
    return all;
  };
  set_num_threads(1);
  const std::vector<double> one = run();
  for (int n : {2, 3, 8}) {
    set_num_threads(n);
    EXPECT_EQ(run(), one) << n;
  }
  set_num_threads(threads);
}

TEST(Reduce, Out) {
  const Tensor a = filled({4, 5}, ScalarType::Float32);
  const Tensor out = empty_cpu({0}, ScalarType::Float64);
  aten::sum_out(a, OptionalIntList(IntList({1})), false, std::nullopt, out);
  EXPECT_EQ(values(out), values(aten::sum(a, OptionalIntList(IntList({1})))));
}

}  // namespace
}  // namespace treadle
