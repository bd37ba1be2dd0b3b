// Every function of vectors, on every target of this machine, against the C library: the largest
// error in units of the last place over wide ranges, and the exact result at infinities, NaN, zeros
// of both signs and the smallest numbers.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/scalar/math_test.cc"
#include "aten/backend/cpu/foreach_target.h"

#include "aten/engine/cpu/kernels-inl.h"

#ifndef TREADLE_MATH_TEST_LIST
#define TREADLE_MATH_TEST_LIST
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "aten/backend/cpu/testing_targets.h"

namespace treadle::simd::math_test {

using UnaryFloat = void (*)(const float* x, float* y, int64_t n);
using UnaryDouble = void (*)(const double* x, double* y, int64_t n);
struct Case {
  const char* name;
  double ulp;        // allowed error
  double low, high;  // range of the samples that count
  UnaryFloat f32;
  UnaryDouble f64;
  long double (*reference)(long double);
};

}  // namespace treadle::simd::math_test
#endif

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

template <class T, class F>
void map_array(const T* x, T* y, int64_t n, F f) {
  for (int64_t i = 0; i < n; i += Vec<T>::kLanes) {
    const int64_t count = std::min(n - i, Vec<T>::kLanes);
    store_first(f(load_first(x + i, count)), y + i, count);
  }
}

std::vector<math_test::Case> math_cases() {
  const double inf = std::numeric_limits<double>::infinity();
  // A lambda per function: its vector form for both types, and the C library's in the widest type.
  const auto make = [](const char* name, double ulp, double low, double high, auto vector,
                       auto reference) {
    return math_test::Case{
        name,
        ulp,
        low,
        high,
        [](const float* x, float* y, int64_t n) { map_array(x, y, n, decltype(vector)()); },
        [](const double* x, double* y, int64_t n) { map_array(x, y, n, decltype(vector)()); },
        +reference};
  };
  using L = long double;
  return {
      make(
          "exp", 1.1, -inf, inf, [](auto x) HWY_ATTR { return exp(x); },
          [](L x) { return std::exp(x); }),
      make(
          "expm1", 4, -inf, inf, [](auto x) HWY_ATTR { return expm1(x); },
          [](L x) { return std::expm1(x); }),
      make(
          "exp2", 1.1, -inf, inf, [](auto x) HWY_ATTR { return exp2(x); },
          [](L x) { return std::exp2(x); }),
      make(
          "log", 1.1, -inf, inf, [](auto x) HWY_ATTR { return log(x); },
          [](L x) { return std::log(x); }),
      make(
          "log2", 2, -inf, inf, [](auto x) HWY_ATTR { return log2(x); },
          [](L x) { return std::log2(x); }),
      make(
          "log10", 2, -inf, inf, [](auto x) HWY_ATTR { return log10(x); },
          [](L x) { return std::log10(x); }),
      make(
          "log1p", 3, -inf, inf, [](auto x) HWY_ATTR { return log1p(x); },
          [](L x) { return std::log1p(x); }),
      make(
          "sin", 3, -inf, inf, [](auto x) HWY_ATTR { return sin(x); },
          [](L x) { return std::sin(x); }),
      make(
          "cos", 3, -inf, inf, [](auto x) HWY_ATTR { return cos(x); },
          [](L x) { return std::cos(x); }),
      make(
          "tan", 1.1, -inf, inf, [](auto x) HWY_ATTR { return tan(x); },
          [](L x) { return std::tan(x); }),
      make(
          "asin", 3, -inf, inf, [](auto x) HWY_ATTR { return asin(x); },
          [](L x) { return std::asin(x); }),
      make(
          "acos", 2, -inf, inf, [](auto x) HWY_ATTR { return acos(x); },
          [](L x) { return std::acos(x); }),
      make(
          "atan", 3, -inf, inf, [](auto x) HWY_ATTR { return atan(x); },
          [](L x) { return std::atan(x); }),
      make(
          "sinh", 4, -inf, inf, [](auto x) HWY_ATTR { return sinh(x); },
          [](L x) { return std::sinh(x); }),
      make(
          "cosh", 2, -inf, inf, [](auto x) HWY_ATTR { return cosh(x); },
          [](L x) { return std::cosh(x); }),
      make(
          "tanh", 4, -inf, inf, [](auto x) HWY_ATTR { return tanh(x); },
          [](L x) { return std::tanh(x); }),
      make(
          "asinh", 3, -inf, inf, [](auto x) HWY_ATTR { return asinh(x); },
          [](L x) { return std::asinh(x); }),
      make(
          "acosh", 4, -inf, inf, [](auto x) HWY_ATTR { return acosh(x); },
          [](L x) { return std::acosh(x); }),
      make(
          "atanh", 4, -inf, inf, [](auto x) HWY_ATTR { return atanh(x); },
          [](L x) { return std::atanh(x); }),
      make(
          "erf", 1.1, -inf, inf, [](auto x) HWY_ATTR { return erf(x); },
          [](L x) { return std::erf(x); }),
      make(
          "erfc", 3, -inf, inf, [](auto x) HWY_ATTR { return erfc(x); },
          [](L x) { return std::erfc(x); }),
      make(
          "sqrt", 0.5, -inf, inf, [](auto x) HWY_ATTR { return sqrt(x); },
          [](L x) { return std::sqrt(x); }),
      make(
          "rsqrt", 2, -inf, inf, [](auto x) HWY_ATTR { return rsqrt(x); },
          [](L x) { return 1 / std::sqrt(x); }),
      make(
          "reciprocal", 0.5, -inf, inf, [](auto x) HWY_ATTR { return reciprocal(x); },
          [](L x) { return 1 / x; }),
      make(
          "sigmoid", 3, -inf, inf, [](auto x) HWY_ATTR { return sigmoid(x); },
          [](L x) { return 1 / (1 + std::exp(-x)); }),
      make(
          "floor", 0, -inf, inf, [](auto x) HWY_ATTR { return floor(x); },
          [](L x) { return std::floor(x); }),
      make(
          "ceil", 0, -inf, inf, [](auto x) HWY_ATTR { return ceil(x); },
          [](L x) { return std::ceil(x); }),
      make(
          "trunc", 0, -inf, inf, [](auto x) HWY_ATTR { return trunc(x); },
          [](L x) { return std::trunc(x); }),
      make(
          "round", 0, -inf, inf, [](auto x) HWY_ATTR { return round(x); },
          [](L x) { return std::nearbyint(x); }),
  };
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {
HWY_EXPORT(math_cases);
}

namespace treadle::simd::math_test {
namespace {

// Distance in units of the last place of the exact result; 0 for two NaN or two equal infinities.
template <class T>
double ulps(T got, long double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : HUGE_VAL;
  const T rounded = static_cast<T>(exact);
  if (std::isinf(rounded) || std::isinf(got)) {
    if (got == rounded) return 0;
    // An exact result within rounding of the largest number may come out as either.
    const long double largest = std::numeric_limits<T>::max();
    return std::isinf(got) == std::isinf(rounded) || std::abs(std::abs(exact) / largest - 1) > 1e-6L
               ? HUGE_VAL
               : 1;
  }
  int exponent;
  std::frexp(rounded, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  const long double ulp = std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::abs(static_cast<long double>(got) - exact) / ulp);
}

// Numbers of every magnitude and sign, then dense ones where functions bend, then the special ones.
template <class T>
std::vector<T> samples() {
  std::vector<T> x;
  const T inf = std::numeric_limits<T>::infinity();
  for (T v : {T(0),
              T(-0.0),
              inf,
              -inf,
              std::numeric_limits<T>::quiet_NaN(),
              std::numeric_limits<T>::denorm_min(),
              std::numeric_limits<T>::min(),
              std::numeric_limits<T>::max(),
              std::numeric_limits<T>::lowest(),
              T(1),
              T(-1),
              T(0.5),
              T(-0.5),
              T(1.5),
              T(2.5),
              std::nextafter(T(1), T(0)),
              std::nextafter(T(1), T(2)),
              T(88.7),
              T(88.8),
              T(-87.4),
              T(-103.9),
              T(709.7),
              T(709.9),
              T(-708.5),
              T(-745.1)}) {
    x.push_back(v);
    x.push_back(-v);
  }
  uint64_t state = 1;
  const auto next = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state >> 11) / 9007199254740992.0;
  };
  const double reach = sizeof(T) == 4 ? 37 : 300;
  for (int i = 0; i < 200000; ++i) {
    const T magnitude = static_cast<T>(std::pow(10.0, (2 * next() - 1) * reach));
    x.push_back(next() < 0.5 ? magnitude : -magnitude);
    x.push_back(static_cast<T>(2 * next() - 1));
    x.push_back(static_cast<T>(200 * next() - 100));
    x.push_back(static_cast<T>(1 + (next() - 0.5) * 1e-3));
  }
  return x;
}

template <class T, class Get>
void check_all(const char* target, const std::vector<Case>& cases, Get get) {
  const std::vector<T> x = samples<T>();
  for (const Case& c : cases) {
    std::vector<T> y(x.size());
    get(c)(x.data(), y.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    T at = 0, got = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] < c.low || x[i] > c.high) continue;
      const double error = ulps(y[i], c.reference(static_cast<long double>(x[i])));
      if (error > worst) {
        worst = error;
        at = x[i];
        got = y[i];
      }
    }
    EXPECT_LE(worst, c.ulp) << c.name << " of " << (sizeof(T) == 4 ? "float" : "double") << " on "
                            << target << " at " << at << ": " << got;
    const T zeros[2] = {T(0), T(-0.0)};
    T results[2];
    get(c)(zeros, results, 2);
    for (int k = 0; k < 2; ++k) {
      const T expected = static_cast<T>(c.reference(zeros[k]));
      if (expected == 0) {
        EXPECT_EQ(std::signbit(results[k]), std::signbit(expected))
            << c.name << " on " << target << " at zero " << k;
      }
    }
  }
}

TEST(SimdMath, WithinItsBoundOnEveryTarget) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const OnTarget on(target);
    const char* const name = hwy::TargetName(target);
    const std::vector<Case> cases = HWY_DYNAMIC_DISPATCH(math_cases)();
    check_all<float>(name, cases, [](const Case& c) { return c.f32; });
    check_all<double>(name, cases, [](const Case& c) { return c.f64; });
  }
}

TEST(SimdMath, IntegersAreDefinedEverywhere) {
  const Num<int32_t> least{std::numeric_limits<int32_t>::lowest()}, minus_one{-1}, zero{0};
  EXPECT_EQ((-least).v, least.v);
  EXPECT_EQ(abs(least).v, least.v);
  EXPECT_EQ(trunc_divide(least, minus_one).v, least.v);
  EXPECT_EQ(floor_divide(least, minus_one).v, least.v);
  EXPECT_EQ(remainder(least, minus_one).v, 0);
  EXPECT_THROW(floor_divide(least, zero), Error);
  EXPECT_EQ(floor_divide(Num<int8_t>{-7}, Num<int8_t>{2}).v, -4);
  EXPECT_EQ(remainder(Num<int8_t>{-7}, Num<int8_t>{2}).v, 1);
  EXPECT_EQ(remainder(Num<int8_t>{7}, Num<int8_t>{-2}).v, -1);
  EXPECT_EQ(shift_left(Num<int32_t>{1}, Num<int32_t>{32}).v, 0);
  EXPECT_EQ(shift_right(Num<int32_t>{-8}, Num<int32_t>{99}).v, -1);
  EXPECT_EQ(pow(Num<int64_t>{-1}, Num<int64_t>{-3}).v, -1);
  EXPECT_EQ(pow(Num<int64_t>{3}, Num<int64_t>{4}).v, 81);
  EXPECT_EQ((Num<int16_t>{32767} * Num<int16_t>{32767}).v, 1);
}

TEST(SimdMath, InversesInvert) {
  for (double x : {-0.999, -0.5, -1e-8, 0.0, 0.1, 0.7, 0.99999})
    EXPECT_NEAR(std::erf(scalar::erfinv(x)), x, 1e-15);
  EXPECT_NEAR(scalar::digamma(1.0), -0.57721566490153286, 1e-15);
  EXPECT_NEAR(scalar::digamma(-0.5), 0.03648997397857652, 1e-14);
}

}  // namespace
}  // namespace treadle::simd::math_test
#endif  // HWY_ONCE
