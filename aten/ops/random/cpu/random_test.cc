// Random numbers: reproducible at any thread count, with the right ranges and moments.
//
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "aten/ops/arange.h"
#include "aten/ops/bernoulli.h"
#include "aten/ops/bernoulli_.h"
#include "aten/ops/empty.h"
#include "aten/ops/exponential_.h"
#include "aten/ops/full.h"
#include "aten/ops/multinomial.h"
#include "aten/ops/normal.h"
#include "aten/ops/normal_.h"
#include "aten/ops/rand.h"
#include "aten/ops/randint.h"
#include "aten/ops/randn.h"
#include "aten/ops/random/cpu/random_stream.h"
#include "aten/ops/random_.h"
#include "aten/ops/randperm.h"
#include "aten/ops/to.h"
#include "aten/ops/transpose.h"
#include "aten/ops/uniform_.h"
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

Generator seeded(uint64_t seed) {
  const Generator g = make_generator(kCPU);
  g->seed(seed);
  return g;
}

std::vector<double> values(const Tensor& t) {
  const Tensor d = aten::to(t, ScalarType::Float64);
  return std::vector<double>(d.data_as<double>(), d.data_as<double>() + d.numel());
}
double mean(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}
double deviation(const std::vector<double>& v) {
  const double m = mean(v);
  double sum = 0;
  for (double x : v) sum += (x - m) * (x - m);
  return std::sqrt(sum / static_cast<double>(v.size()));
}

TEST(Random, SameBitsAtAnyThreadCount) {
  const int saved = num_threads();
  const auto all = [](int threads) {
    set_num_threads(threads);
    const Generator g = seeded(11);
    std::vector<double> out;
    for (ScalarType t : {ScalarType::Float32, ScalarType::Float64, ScalarType::BFloat16}) {
      for (const Tensor& r : {aten::rand({40003}, g, t), aten::randn({40003}, g, t),
                              aten::exponential_(aten::empty({40003}, t), 2, g)}) {
        for (double v : values(r)) out.push_back(v);
      }
    }
    for (double v : values(aten::randint(-5, 1000, {40003}, g))) out.push_back(v);
    return out;
  };
  const auto one = all(1);
  for (int threads : {2, 3, 8}) EXPECT_EQ(all(threads), one);
  set_num_threads(saved);
}

TEST(Random, AShorterTensorIsAPrefix) {
  const auto longer = values(aten::randn({1000}, seeded(3))),
             shorter = values(aten::randn({13}, seeded(3)));
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
  EXPECT_NE(values(aten::randn({13}, seeded(4))), shorter);
  const Generator g = seeded(3);
  EXPECT_NE(values(aten::randn({13}, g)), values(aten::randn({13}, g)));
}

TEST(Random, UniformStaysBelowItsEnd) {
  for (ScalarType t :
       {ScalarType::Float16, ScalarType::BFloat16, ScalarType::Float32, ScalarType::Float64}) {
    const auto v = values(aten::uniform_(aten::empty({200000}, t), -1, 3, seeded(1)));
    for (double x : v) ASSERT_TRUE(x >= -1 && x < 3) << name_of(t);
    EXPECT_NEAR(mean(v), 1, 0.02) << name_of(t);
    EXPECT_NEAR(deviation(v), 4 / std::sqrt(12.0), 0.02);
  }
  EXPECT_EQ(values(aten::uniform_(aten::empty({3}), 2, 2)), std::vector<double>(3, 2.0));
  EXPECT_NE(error_of([] { aten::uniform_(aten::empty({3}), 3, 2); }), "no error");
  EXPECT_NE(error_of([] { aten::uniform_(aten::empty({3}), 0, INFINITY); }), "no error");
  EXPECT_NE(error_of([] { aten::uniform_(aten::empty({3}, ScalarType::Float16), 0, 1e6); }),
            "no error");
}

TEST(Random, NormalHasItsMoments) {
  const auto v = values(aten::normal_(aten::empty({200000}), 5, 2, seeded(2)));
  EXPECT_NEAR(mean(v), 5, 0.02);
  EXPECT_NEAR(deviation(v), 2, 0.02);
  double third = 0;
  for (double x : v) third += std::pow((x - 5) / 2, 3);
  EXPECT_NEAR(third / static_cast<double>(v.size()), 0, 0.05);
  const Tensor z = aten::randn({100000}, seeded(2), ScalarType::Complex64);
  const auto* parts = static_cast<const float*>(z.data());
  const std::vector<double> both(parts, parts + 200000);
  EXPECT_NEAR(deviation(both), std::sqrt(0.5), 0.01);
  EXPECT_NE(error_of([] { aten::normal_(aten::empty({3}), 0, -1); }), "no error");
  EXPECT_EQ(aten::normal(aten::zeros({2, 1}), aten::full({3}, 1.0)).sizes(), IntList({2, 3}));
  EXPECT_NE(error_of([] { aten::normal(0, aten::full({3}, -1.0)); }), "no error");
}

TEST(Random, BernoulliHasItsProbability) {
  EXPECT_NEAR(
      mean(values(aten::bernoulli_(aten::empty({200000}, ScalarType::Bool), 0.3, seeded(5)))), 0.3,
      0.01);
  EXPECT_EQ(mean(values(aten::bernoulli_(aten::empty({1000}), 1.0))), 1);
  EXPECT_EQ(mean(values(aten::bernoulli_(aten::empty({1000}), 0.0))), 0);
  const Tensor p = aten::transpose(aten::full({2, 50000}, 0.75), 0, 1);
  EXPECT_NEAR(mean(values(aten::bernoulli(p, seeded(6)))), 0.75, 0.01);
  EXPECT_NE(error_of([] { aten::bernoulli(aten::full({3}, 1.5)); }), "no error");
  EXPECT_NE(error_of([] { aten::bernoulli(aten::full({3}, NAN)); }), "no error");
  EXPECT_NE(error_of([] { aten::bernoulli_(aten::empty({3}), 2.0); }), "no error");
}

TEST(Random, IntegersCoverTheirRange) {
  const auto v = values(aten::randint(-2, 3, {50000}, seeded(7)));
  for (int i = -2; i < 3; ++i)
    EXPECT_NEAR(static_cast<double>(std::count(v.begin(), v.end(), i)), 10000, 400);
  for (double x : v) ASSERT_TRUE(x >= -2 && x < 3);
  const auto bytes = values(aten::random_(aten::empty({20000}, ScalarType::UInt8)));
  EXPECT_EQ(*std::max_element(bytes.begin(), bytes.end()), 255);
  EXPECT_EQ(*std::min_element(bytes.begin(), bytes.end()), 0);
  aten::random_(aten::empty({3}, ScalarType::Int64), INT64_MIN, std::nullopt);
  EXPECT_NE(error_of([] { aten::randint(5, 5, {1}); }), "no error");
  EXPECT_NE(error_of([] { aten::random_(aten::empty({3}, ScalarType::Int8), 0, 1000); }),
            "no error");
}

TEST(Random, PermutationsHaveEveryIndexOnce) {
  for (int64_t n : {0, 1, 2, 1000}) {
    auto v = values(aten::randperm(n, seeded(8)));
    std::sort(v.begin(), v.end());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(v[static_cast<size_t>(i)], i);
  }
  // Each of the six orders of three elements is equally likely.
  const Generator g = seeded(9);
  std::array<int, 9> counts{};
  for (int i = 0; i < 6000; ++i) {
    const auto v = values(aten::randperm(3, g));
    ++counts[static_cast<size_t>(3 * v[0] + v[1])];
  }
  for (int c : counts) EXPECT_TRUE(c == 0 || std::abs(c - 1000) < 150) << c;
  EXPECT_NE(error_of([] { aten::randperm(300, ScalarType::UInt8); }), "no error");
  EXPECT_NE(error_of([] { aten::randperm(-1); }), "no error");
}

TEST(Random, MultinomialFollowsItsWeights) {
  const Tensor w = aten::to(aten::arange(4), ScalarType::Float32);  // 0 1 2 3
  const auto v = values(aten::multinomial(w, 60000, true, seeded(10)));
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(static_cast<double>(std::count(v.begin(), v.end(), i)), 10000 * i, 500);
  auto all = values(aten::multinomial(w, 3, false, seeded(10)));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(aten::multinomial(aten::full({5, 4}, 1.0), 2).sizes(), IntList({5, 2}));
  EXPECT_NE(error_of([&] { aten::multinomial(w, 4); }).find("at least 4 weights > 0"),
            std::string::npos);
  EXPECT_NE(error_of([&] { aten::multinomial(w, 5); }), "no error");
  EXPECT_NE(error_of([&] { aten::multinomial(aten::full({3}, -1.0), 1); }), "no error");
  EXPECT_NE(error_of([&] { aten::multinomial(aten::full({3}, NAN), 1); }), "no error");
  EXPECT_NE(error_of([&] { aten::multinomial(aten::zeros({3}), 1); }), "no error");
  EXPECT_NE(error_of([&] { aten::multinomial(aten::zeros({2, 0}), 1); }), "no error");
}

TEST(Random, ExponentialIsPositiveWithItsMean) {
  const auto v = values(aten::exponential_(aten::empty({200000}), 4, seeded(12)));
  for (double x : v) ASSERT_GT(x, 0);
  EXPECT_NEAR(mean(v), 0.25, 0.005);
  EXPECT_NE(error_of([] { aten::exponential_(aten::empty({3}), 0); }), "no error");
}

}  // namespace
}  // namespace treadle
