// Bessel and Airy functions of one number, in double for every type. Those of the first and second
// kind come from the C library. The modified ones are Chebyshev series. Ai is a Taylor series about
// the nearest of several points, and an asymptotic expansion beyond them.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

#include "aten/scalar/special_tables.h"

namespace treadle::simd::scalar {

// Clenshaw's recurrence for a Chebyshev series, the highest term first; t in [-1, 1].
template <size_t N>
double chebyshev_sum(const double (&c)[N], double t) {
  double next = 0, after = 0;
  for (size_t i = 0; i + 1 < N; ++i) {
    const double sum = 2 * t * next - after + c[i];
    after = next;
    next = sum;
  }
  return t * next - after + c[N - 1];
}
// Horner's rule, the highest power first.
template <size_t N>
double polynomial(const double (&c)[N], double x) {
  double sum = c[0];
  for (size_t i = 1; i < N; ++i) sum = sum * x + c[i];
  return sum;
}

inline double i0e(double x) {
  x = std::abs(x);
  if (x <= 8) return chebyshev_sum(tables::kI0Small, x / 4 - 1);
  return chebyshev_sum(tables::kI0Large, 16 / x - 1) / std::sqrt(x);
}
inline double i1e(double x) {
  const double size = std::abs(x);
  if (size <= 8) return chebyshev_sum(tables::kI1Small, size / 4 - 1) * x;
  return std::copysign(chebyshev_sum(tables::kI1Large, 16 / size - 1) / std::sqrt(size), x);
}
// The exponential in two steps: it overflows before its product with a small number does.
inline double times_exp(double value, double x) {
  if (x < 700) return value * std::exp(x);
  const double half = std::exp(x / 2);
  return value * half * half;
}
inline double i0(double x) { return std::isinf(x) ? std::abs(x) : times_exp(i0e(x), std::abs(x)); }
inline double i1(double x) { return std::isinf(x) ? x : times_exp(i1e(x), std::abs(x)); }

// K is infinite at zero and has no real value below it.
inline double at_zero_or_below(double x) {
  return x == 0 ? std::numeric_limits<double>::infinity()
                : std::numeric_limits<double>::quiet_NaN();
}
// Half of a denormal number has fewer digits, or none.
inline double log_half(double x) {
  return x < 1e-300 ? std::log(x) - std::numbers::ln2 : std::log(x / 2);
}
inline double k0_small(double x) {
  return chebyshev_sum(tables::kK0Small, x * x / 2 - 1) - log_half(x) * i0(x);
}
inline double k1_small(double x) {
  return chebyshev_sum(tables::kK1Small, x * x / 2 - 1) / x + log_half(x) * i1(x);
}
inline double scaled_k0(double x) {
  if (!(x > 0)) return at_zero_or_below(x);
  if (x <= 2) return k0_small(x) * std::exp(x);
  return chebyshev_sum(tables::kK0Large, 4 / x - 1) / std::sqrt(x);
}
inline double scaled_k1(double x) {
  if (!(x > 0)) return at_zero_or_below(x);
  if (x <= 2) return k1_small(x) * std::exp(x);
  return chebyshev_sum(tables::kK1Large, 4 / x - 1) / std::sqrt(x);
}
inline double k0(double x) {
  if (!(x > 0)) return at_zero_or_below(x);
  return x <= 2 ? k0_small(x) : scaled_k0(x) * std::exp(-x);
}
inline double k1(double x) {
  if (!(x > 0)) return at_zero_or_below(x);
  return x <= 2 ? k1_small(x) : scaled_k1(x) * std::exp(-x);
}

inline double bessel_j0(double x) { return ::j0(x); }
inline double bessel_j1(double x) { return ::j1(x); }
inline double bessel_y0(double x) {
  return x < 0 ? std::numeric_limits<double>::quiet_NaN() : ::y0(x);
}
inline double bessel_y1(double x) {
  return x < 0 ? std::numeric_limits<double>::quiet_NaN() : ::y1(x);
}
inline double spherical_j0(double x) {
  if (std::isinf(x)) return 0;
  return std::abs(x) < 1e-8 ? 1 : std::sin(x) / x;
}

// The sums of the asymptotic series over even and over odd powers of 1 / zeta; with alternating
// signs for negative x, where they are the modulus and phase of an oscillation.
inline void airy_sums(double zeta, bool alternating, double& even, double& odd) {
  even = odd = 0;
  double power = 1;
  for (size_t k = 0; k < std::size(tables::kAiryAsymptotic); ++k) {
    const double term = tables::kAiryAsymptotic[k] * power;
    (k % 2 ? odd : even) += alternating && k / 2 % 2 ? -term : term;
    if (std::abs(term) < 1e-18) break;
    power /= zeta;
  }
}

inline double airy_ai(double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return 0;
  if (x >= -11 && x <= 10) {
    // y'' = x y gives the Taylor series about a point from the value and the slope there.
    const double place = std::round(2 * (x + 11));
    const double(&known)[2] = tables::kAiry[static_cast<size_t>(place)];
    const double center = place / 2 - 11, h = x - center;
    double before = known[0], current = known[1] * h, two_before = 0, sum = known[0];
    double carried[3] = {two_before, before, current};  // terms k - 2, k - 1, k, powers included
    for (int k = 1; k < 24; ++k) {
      sum += carried[2];
      const double next =
          (center * carried[1] * h * h + carried[0] * h * h * h) / (double(k + 1) * k);
      carried[0] = carried[1];
      carried[1] = carried[2];
      carried[2] = next;
    }
    return sum;
  }
  const double size = std::abs(x), root = std::sqrt(size);
  // Below the smallest number, or an oscillation whose phase overflows.
  if (size > (x > 0 ? 110 : 1e200)) return 0;
  // zeta = 2/3 size^(3/2) in two parts: an exponential and a cosine need its last digits.
  const double root_rest = std::fma(-root, root, size) / (2 * root);
  const double product = size * root;
  const double product_rest = std::fma(size, root, -product) + size * root_rest;
  const double zeta = product / 1.5;
  const double zeta_rest = (std::fma(-1.5, zeta, product) + product_rest) / 1.5;
  double even, odd;
  airy_sums(zeta, x < 0, even, odd);
  const double scale = 1 / std::sqrt(std::numbers::pi * root);
  if (x > 0) return scale / 2 * std::exp(-zeta) * (1 - zeta_rest) * (even - odd);
  const double c = std::cos(zeta) * std::cos(zeta_rest) - std::sin(zeta) * std::sin(zeta_rest);
  const double s = std::sin(zeta) * std::cos(zeta_rest) + std::cos(zeta) * std::sin(zeta_rest);
  // sin and cos of zeta + pi/4
  const double half = std::numbers::sqrt2 / 2;
  return scale * half * ((s + c) * even - (c - s) * odd);
}

}  // namespace treadle::simd::scalar
