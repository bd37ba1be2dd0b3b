// Real functions of one number. Lanes of a vector are mapped through them where a function has no
// vector form. They are as accurate as the C library (below 1 ULP), unless noted otherwise.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

namespace treadle::simd::scalar {

// Powers with an everyday exponent are products, so that a vector of them may be, too, with the
// same bits.
template <class R>
R pow(R a, R b) {
  if (b == R(2)) return a * a;
  if (b == R(3)) return a * a * a;
  if (b == R(1)) return a;
  if (b == R(0.5)) return std::isinf(a) ? std::abs(a) : std::sqrt(a) + R(0);
  return std::pow(a, b);
}

// The remainder with the sign of the divisor, also where it is zero, as Python's %.
template <class R>
R remainder(R a, R b) {
  const R mod = std::fmod(a, b);
  if (mod == 0) return std::copysign(mod, b);
  return (b < 0) != (mod < 0) ? mod + b : mod;
}

// floor(a / b) without the rounding of the quotient: floor_divide(1, 0.1) is 9.
template <class R>
R floor_divide(R a, R b) {
  if (b == 0) return a / b;
  const R mod = std::fmod(a, b);
  R div = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) div -= R(1);
  if (div == 0) return std::copysign(R(0), a / b);
  const R floored = std::floor(div);
  return div - floored > R(0.5) ? floored + R(1) : floored;
}

inline double lgamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}
inline float lgamma(float x) {
  int sign;
  return lgammaf_r(x, &sign);
}

// The logarithmic derivative of gamma: recurrence up to 10, then the asymptotic series. Below 4 ULP
// away from its zeros.
template <class R>
constexpr R digamma(R value) {
  double x = static_cast<double>(value);
  if (x == 0) return static_cast<R>(std::copysign(std::numeric_limits<double>::infinity(), -x));
  double result = 0;
  if (x < 0) {
    const double part = x - std::round(x);  // exact, and small where the tangent is
    if (part == 0) return std::numeric_limits<R>::quiet_NaN();
    result = -std::numbers::pi / std::tan(std::numbers::pi * part);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  if (x == 10) return static_cast<R>(result + 2.25175258906672110764);
  double series = 0;
  if (x < 1e17) {
    constexpr double kBernoulli[] = {8.33333333333333333333e-2, -2.10927960927960927961e-2,
                                     7.57575757575757575758e-3, -4.16666666666666666667e-3,
                                     3.96825396825396825397e-3, -8.33333333333333333333e-3,
                                     8.33333333333333333333e-2};
    const double z = 1 / (x * x);
    for (double b : kBernoulli) series = series * z + b;
    series *= z;
  }
  return static_cast<R>(result + std::log(x) - 0.5 / x - series);
}

// Polynomials for the first approximation of the inverse of erf (Giles), highest power first.
struct ErfinvStart {
  double central[9], tail[9];
};
constexpr ErfinvStart erfinv_start() {
  return {{2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
           -0.00125372503, -0.00417768164, 0.246640727, 1.50140941},
          {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
           -0.0076224613, 0.00943887047, 1.00167406, 2.83297682}};
}
// Inverse of erf: a rational start (Giles), then Newton's method; in the tails on the logarithm of
// erfc, which is nearly a parabola.
template <class R>
R erfinv(R value) {
  const double y = static_cast<double>(value);
  if (!(y >= -1 && y <= 1)) return std::numeric_limits<R>::quiet_NaN();
  if (y == 1 || y == -1)
    return static_cast<R>(std::copysign(std::numeric_limits<double>::infinity(), y));
  constexpr ErfinvStart kStart = erfinv_start();
  double w = -std::log((1 - y) * (1 + y)), x;
  if (w < 5) {
    w -= 2.5;
    x = 0;
    for (double c : kStart.central) x = x * w + c;
  } else {
    w = std::sqrt(w) - 3;
    x = 0;
    for (double c : kStart.tail) x = x * w + c;
  }
  const double size = std::abs(y), rest = 1 - size;
  x *= size;
  for (int i = 0; i < 4; ++i) {
    // erfc keeps the digits that erf loses near one.
    const double slope_inverse = std::sqrt(std::numbers::pi) / 2 * std::exp(x * x);
    const double step = size > 0.99  ? std::log(std::erfc(x) / rest) * std::erfc(x) * slope_inverse
                        : size > 0.5 ? (std::erfc(x) - rest) * slope_inverse
                                     : (size - std::erf(x)) * slope_inverse;
    x += step;
    if (std::abs(step) < 1e-9 * x) break;
  }
  return static_cast<R>(std::copysign(x, y));
}

}  // namespace treadle::simd::scalar
