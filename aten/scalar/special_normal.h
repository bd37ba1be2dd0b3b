// Functions of the normal distribution and the error function of one number, in double for every
// type. A function that decays like exp(-x^2) is computed as that exponential, with the last digits
// of the square, times the scaled function erfcx, which decays like 1 / x.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "aten/scalar/scalar_math.h"
#include "aten/scalar/special_bessel.h"

namespace treadle::simd::scalar {

// exp(sign * x^2 / divisor)
inline double exp_square(double x, double sign, double divisor) {
  const double square = x * x;
  if (!(square < 1e300)) return sign < 0 ? std::exp(-square) : square;
  const double rest = std::fma(x, x, -square), power = std::exp(sign * square / divisor);
  return power == 0 ? 0 : power * (1 + sign * rest / divisor);
}

// exp(x^2) erfc(x)
inline double erfcx(double x) {
  if (x < 0) {
    if (x < -27) return std::numeric_limits<double>::infinity();
    return 2 * exp_square(x, 1, 1) - erfcx(-x);
  }
  if (std::isinf(x)) return 0;
  return polynomial(tables::kErfcx, (x - 4) / (x + 4)) / 2 / (0.5 + x);
}

inline constexpr double kHalfRoot = std::numbers::sqrt2 / 2;

// The normal distribution function.
inline double ndtr(double x) {
  if (x < -1) return exp_square(x, -1, 2) * erfcx(-x * kHalfRoot) / 2;
  return std::erfc(-x * kHalfRoot) / 2;
}
inline double log_ndtr(double x) {
  if (x < -1) return std::log(erfcx(-x * kHalfRoot) / 2) - x * x / 2;
  return std::log1p(-ndtr(-x));
}

// Its inverse. In the tail by Newton's method on the logarithm, which is nearly a parabola.
inline double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (p == 0) return -std::numeric_limits<double>::infinity();
  if (p > 0.5) return -ndtri(1 - p);
  if (p > 0.2) return std::numbers::sqrt2 * erfinv(2 * p - 1);
  const double wanted = std::log(p), t = -2 * wanted;
  double x = -std::sqrt(t - std::log(t) - std::log(2 * std::numbers::pi));
  for (int i = 0; i < 5; ++i) {
    const double slope_inverse = erfcx(-x * kHalfRoot) * std::sqrt(std::numbers::pi / 2);
    x -= (log_ndtr(x) - wanted) * slope_inverse;
  }
  return x;
}

}  // namespace treadle::simd::scalar
