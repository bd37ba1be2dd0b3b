// Methods that draw a number of a distribution from a varying count of uniform or normal numbers,
// on every device.
//
//   double n = draw_poisson(rate, numbers);   // numbers.next() is uniform in (0, 1),
//                                             // numbers.next_normal() normally distributed
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/scalar_type.h"

namespace treadle {

// ---- counts ----

// The logarithm of k!. std::lgamma writes a global, so threads cannot use it. Stirling's series is
// exact to double from 10 on.
constexpr double log_factorial(double k) {
  constexpr double kSmall[] = {0,
                               0,
                               0.69314718055994531,
                               1.7917594692280550,
                               3.1780538303479458,
                               4.7874917427820458,
                               6.5792512120101012,
                               8.5251613610654147,
                               10.604602902745251,
                               12.801827480081469};
  if (k < 10) return kSmall[static_cast<int>(k)];
  const double n = k + 1, square = 1 / (n * n);
  const double series =
      (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680))) / n;
  return (n - 0.5) * std::log(n) - n + 0.5 * std::log(2 * std::numbers::pi) + series;
}

// Small rates: counts the factors until a product of uniform numbers is below
// exp(-rate).
template <class Numbers>
constexpr double small_poisson(double rate, Numbers& numbers) {
  const double stop = std::exp(-rate);
  double count = 0;
  for (double product = numbers.next(); product > stop; product *= numbers.next()) ++count;
  return count;
}

// Large rates: Hoermann's transformed rejection with squeeze (PTRS, 1993).
template <class Numbers>
constexpr double large_poisson(double rate, Numbers& numbers) {
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = numbers.next() - 0.5, v = numbers.next();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -rate + k * log_rate - log_factorial(k))
      return k;
  }
}

template <class Numbers>
constexpr double draw_poisson(double rate, Numbers& numbers) {
  if (rate == 0) return 0;
  return rate < 10 ? small_poisson(rate, numbers) : large_poisson(rate, numbers);
}

// Few expected successes: sums geometric waiting times.
template <class Numbers>
constexpr double small_binomial(double count, double p, Numbers& numbers) {
  const double scale = 1 / std::log1p(-p);
  double successes = 0;
  for (double trials = 0;; ++successes) {
    trials += std::floor(std::log(numbers.next()) * scale) + 1;
    if (!(trials <= count)) return successes;
  }
}

// Many expected successes: Hoermann's transformed rejection with squeeze (BTRS, 1993); p at most
// 1/2.
template <class Numbers>
constexpr double large_binomial(double count, double p, Numbers& numbers) {
  const double q = 1 - p, spread = std::sqrt(count * p * q);
  const double b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double center = count * p + 0.5, v_r = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * spread;
  const double odds = std::log(p / q), mode = std::floor((count + 1) * p);
  const double top = log_factorial(mode) + log_factorial(count - mode);
  while (true) {
    const double u = numbers.next() - 0.5, v = numbers.next();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + center);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > count) continue;
    if (std::log(v * alpha / (a / (us * us) + b)) <=
        top - log_factorial(k) - log_factorial(count - k) + (k - mode) * odds)
      return k;
  }
}

template <class Numbers>
constexpr double draw_binomial(double count, double p, Numbers& numbers) {
  if (count == 0 || p == 0) return 0;
  if (p == 1) return count;
  const bool flipped = p > 0.5;
  const double share = flipped ? 1 - p : p;
  const double successes = count * share >= 10 ? large_binomial(count, share, numbers)
                                               : small_binomial(count, share, numbers);
  return flipped ? count - successes : successes;
}

// ---- gamma ----

// A gamma number, as value * exp(log_factor).
struct GammaNumber {
  double value, log_factor;
};

// Marsaglia and Tsang's method (2000): a cube of a normal number is nearly a gamma number, and is
// accepted or drawn anew. A number of a shape below 1 is one of the shape plus 1, times a power of
// a uniform number. The shape 0 gives 0, a negative one NaN.
template <class Numbers>
constexpr GammaNumber draw_gamma(double shape, Numbers& numbers) {
  if (shape == 0) return {0, 0};
  if (!(shape > 0)) return {std::numeric_limits<double>::quiet_NaN(), 0};
  if (shape == std::numeric_limits<double>::infinity()) return {shape, 0};
  const double log_factor = shape < 1 ? std::log(numbers.next()) / shape : 0;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = numbers.next_normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root, u = numbers.next(), square = x * x;
    if (u < 1 - 0.0331 * square * square || std::log(u) < 0.5 * square + d * (1 - v + std::log(v)))
      return {d * v, log_factor};
  }
}

// The smallest normal number of a type.
template <class T>
inline constexpr double kSmallest = std::is_same_v<T, double> ? 0x1p-1022
                                    : std::is_same_v<T, Half> ? 0x1p-14
                                                              : 0x1p-126;

// A positive number of type T, because its logarithm is taken. NaN stays NaN.
template <class T>
constexpr compute_type<T> positive_number(double x) {
  return static_cast<compute_type<T>>(x < kSmallest<T> ? kSmallest<T> : x);
}

}  // namespace treadle
