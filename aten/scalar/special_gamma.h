// Functions around gamma of one or two numbers, in double for every type: Hurwitz' zeta, polygamma
// and the incomplete gamma functions.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

#include "aten/scalar/scalar_math.h"
#include "aten/scalar/special_bessel.h"

namespace treadle::simd::scalar {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// The sum of (q + k)^-s for q > 0: ten terms, and Euler and Maclaurin's formula for the others.
inline double zeta_positive(double s, double q) {
  double sum = 0, w = q;
  for (int k = 0; k < 10 && w < 1e6; ++k, w += 1) {
    const double term = std::pow(w, -s);
    sum += term;
    if (term < 1e-17 * sum || std::isinf(sum)) return sum;
  }
  const double power = std::pow(w, -s);
  const double lower = power > 1e-290 ? power * w : std::pow(w, 1 - s);  // w^(1 - s)
  double tail = lower / (s - 1) + power / 2;
  double factor = s * power / w;
  for (size_t k = 0; k < std::size(tables::kEulerMaclaurin); ++k) {
    const double term = tables::kEulerMaclaurin[k] * factor;
    tail += term;
    if (std::abs(term) < 1e-17 * tail) break;
    const double j = static_cast<double>(2 * k) + 1;
    factor *= (s + j) / w * ((s + j + 1) / w);
  }
  return sum + tail;
}

// Hurwitz' zeta function. For q < 0 it is real where s is an integer.
inline double zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q)) return kNotANumber;
  if (s == 1) return kInfinity;
  if (s < 1) return kNotANumber;
  if (q > 0) return std::isinf(q) ? 0 : zeta_positive(s, q);
  if (q == std::floor(q)) return kInfinity;
  if (s != std::floor(s)) return kNotANumber;
  const double below = std::ceil(-q);  // terms whose base is negative
  if (below <= 20) {
    double sum = 0;
    for (double k = 0; k < below; k += 1) sum += std::pow(q + k, -s);
    return sum + zeta_positive(s, q + below);
  }
  const double part = q + below;  // in (0, 1), exactly
  const double negative = zeta_positive(s, 1 - part) - zeta_positive(s, 1 - q);
  return zeta_positive(s, part) + (std::fmod(s, 2) == 0 ? negative : -negative);
}

// The derivative of order n of digamma.
inline double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  const double sign = std::fmod(n, 2) == 1 ? 1 : -1;
  if (n <= 170) return sign * std::tgamma(n + 1) * zeta(n + 1, x);
  const double sum = zeta(n + 1, x);
  return sign * std::copysign(std::exp(lgamma(n + 1) + std::log(std::abs(sum))), sum);
}

// mu - log(1 + mu), where mu is (x - a) / a.
inline double log_gap(double a, double x) {
  const double mu = (x - a) / a;
  if (std::abs(mu) > 0.5) return mu - std::log(x / a);
  const double r = mu / (2 + mu), z = r * r;
  double sum = 0;
  for (int k = 39; k >= 3; k -= 2) sum = sum * z + 1.0 / k;
  return 2 * z / (1 - r) - 2 * z * r * sum;
}

// x^a exp(-x) / gamma(a + 1)
inline double gamma_weight(double a, double x) {
  if (a < 30) return x > 2000 ? 0 : std::pow(x, a) * std::exp(-x) / std::tgamma(a + 1);
  const double b = 1 / (a * a);
  const double stirling = (1.0 / 12 + b * (-1.0 / 360 + b * (1.0 / 1260 - b / 1680))) / a;
  return std::exp(-a * log_gap(a, x) - stirling) / std::sqrt(2 * std::numbers::pi * a);
}

// The lower function by its power series.
inline double igamma_series(double a, double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 500 && term > 1e-17 * sum; ++k) {
    term *= x / (a + k);
    sum += term;
  }
  return gamma_weight(a, x) * sum;
}

// The upper function by its continued fraction, for x > a + 1 or so.
inline double igammac_fraction(double a, double x) {
  const double weight = gamma_weight(a, x) * a;
  if (weight == 0) return 0;
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int k = 1; k < 500; ++k) {
    const double step = -k * (k - a);
    b += 2;
    d = 1 / (step * d + b);
    c = b + step / c;
    h *= c * d;
    if (std::abs(c * d - 1) < 1e-16) break;
  }
  return weight * h;
}

// The upper function for small a and x, where it is what is left of 1.
inline double igammac_small(double a, double x) {
  const double log_gamma = a <= 0.2 ? a * polynomial(tables::kLogGamma1p, a) : lgamma(1 + a);
  const double rest = std::expm1(a * std::log(x) - log_gamma);  // x^a / gamma(1 + a) - 1
  double term = 1, sum = 0;
  for (int k = 1; k < 100; ++k) {
    term *= -x / k;
    sum += term * a / (a + k);
    if (std::abs(term) < 1e-17) break;
  }
  return -(rest + sum + rest * sum);
}

// Temme's uniform expansion, for large a and x near it. `upper`: which of the two functions.
inline double igamma_uniform(double a, double x, bool upper) {
  const double gap = log_gap(a, x);
  const double eta = std::copysign(std::sqrt(2 * gap), x - a);
  double sum = 0, power = 1;
  for (const auto& row : tables::kTemme) {
    double c = 0;
    for (size_t k = std::size(row); k-- > 0;) c = c * eta + row[k];
    sum += c * power;
    power /= a;
  }
  const double rest = std::exp(-a * gap) / std::sqrt(2 * std::numbers::pi * a) * sum;
  const double side = eta * std::sqrt(a / 2);
  return upper ? std::erfc(side) / 2 + rest : std::erfc(-side) / 2 - rest;
}

inline bool is_uniform(double a, double x) { return a > 30 && x > 0.45 * a && x < 1.8 * a; }

// The ends of the range; false inside it. Lower: 0 at x = 0, 1 at infinity.
inline bool igamma_at_end(double a, double x, double& lower) {
  if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (std::isinf(a) && std::isinf(x)))
    lower = kNotANumber;
  else if (a == 0 || std::isinf(x))
    lower = 1;
  else if (x == 0 || std::isinf(a))
    lower = 0;
  else
    return false;
  return true;
}

// The regularised lower incomplete gamma function.
inline double igamma(double a, double x) {
  double end;
  if (igamma_at_end(a, x, end)) return end;
  if (is_uniform(a, x)) return igamma_uniform(a, x, false);
  return x > a + 1 ? 1 - igammac_fraction(a, x) : igamma_series(a, x);
}
// The upper one.
inline double igammac(double a, double x) {
  double end;
  if (igamma_at_end(a, x, end)) return 1 - end;
  if (is_uniform(a, x)) return igamma_uniform(a, x, true);
  if (x > a + 1 && x > 1.1) return igammac_fraction(a, x);
  const double lower = igamma_series(a, x);
  return lower < 0.5 || x > 1.1 ? 1 - lower : igammac_small(a, x);
}

}  // namespace treadle::simd::scalar
