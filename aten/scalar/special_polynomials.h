// Orthogonal polynomials of one number. The degree is a number, too: its fraction is cut off, and a
// negative degree gives 0. They use their recurrences, in double; Chebyshev polynomials of a high
// degree use their closed forms.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace treadle::simd::scalar {

inline constexpr double kMaxSteps = 64;           // of a recurrence that a closed form can replace
inline constexpr double kMaxGrowingSteps = 1024;  // the same where the closed form is less exact
inline constexpr double kHighestDegree = 8192;    // of the others; NaN above
inline constexpr double kHighestHermite = 1024;   // beyond, all overflow

// The state after `n` steps from p(0) = 1 and p(1) = `current`. A step makes of p(k), and of
// another number that it needs, those of k + 1. Large numbers are scaled down on the way: the
// sign of a result that overflows is that of its last step.
template <class Step>
double recurrence(double x, double n, double current, double other, Step step) {
  if (n == 0) return 1;
  if (n == 1 || std::isnan(x)) return current;
  constexpr double kLarge = 1e140, kFar = 1e160;  // at kFar the square overflows
  double large = 1;
  if (std::abs(x) > kFar) {
    x = std::copysign(kFar, x);
    current = std::clamp(current, -3 * kFar, 3 * kFar);
    other = std::clamp(other, -3 * kFar, 3 * kFar);
  }
  for (double k = 1; k < n; k += 1) {
    if (std::abs(current) > kLarge) {
      other /= kLarge;
      current /= kLarge;
      large *= kLarge;
    }
    step(x, k, current, other);
  }
  return large == 1 ? current : current * large;
}
// A step to next(x, k, p(k), p(k - 1)).
template <class Next>
auto of_two(Next next) {
  return [next](double x, double k, double& p, double& before) {
    const double after = next(x, k, p, before);
    before = p;
    p = after;
  };
}
// A step by next(x, k, p(k), p(k) - p(k - 1)), which cancels less where the polynomial is flat.
template <class Next>
auto by_difference(Next next) {
  return [next](double x, double k, double& p, double& difference) {
    difference = next(x, k, p, difference);
    p += difference;
  };
}

inline bool is_odd(double n) { return std::fmod(n, 2) == 1; }

// The four kinds differ by their second polynomial, a x + b, and their closed forms.
enum class Chebyshev { T, U, V, W };

template <Chebyshev kind>
double chebyshev_closed(double x, double n) {
  const double size = std::abs(x);
  if (size > 1) {
    // V and W change places, and odd degrees their sign, where x does.
    constexpr Chebyshev kMirrored = kind == Chebyshev::V   ? Chebyshev::W
                                    : kind == Chebyshev::W ? Chebyshev::V
                                                           : kind;
    if (x < 0) {
      const double value = chebyshev_closed<kMirrored>(-x, n);
      return is_odd(n) ? -value : value;
    }
    const double t = std::acosh(x);
    if (kind == Chebyshev::T) return std::cosh(n * t);
    const double grown = std::exp(n * t);
    if (kind == Chebyshev::U) return grown * (std::expm1(-2 * (n + 1) * t) / std::expm1(-2 * t));
    if (kind == Chebyshev::V)
      return grown * ((1 + std::exp(-(2 * n + 1) * t)) / (1 + std::exp(-t)));
    return grown * (std::expm1(-(2 * n + 1) * t) / std::expm1(-t));
  }
  const double sign = x < 0 && is_odd(n) ? -1 : 1;
  if (size == 1) {
    if (kind == Chebyshev::T) return sign;
    if (kind == Chebyshev::U) return sign * (n + 1);
    return (kind == Chebyshev::W) == (x > 0) ? sign * (2 * n + 1) : sign;
  }
  const double angle = std::acos(x);
  if (kind == Chebyshev::T) return std::cos(n * angle);
  if (kind == Chebyshev::U) return std::sin((n + 1) * angle) / std::sin(angle);
  if (kind == Chebyshev::V) return std::cos((n + 0.5) * angle) / std::cos(angle / 2);
  return std::sin((n + 0.5) * angle) / std::sin(angle / 2);
}

// At x + rest, where the rest is what rounding has taken off x.
template <Chebyshev kind>
double chebyshev_at(double x, double rest, double degree) {
  if (std::isnan(x) || std::isnan(degree)) return std::numeric_limits<double>::quiet_NaN();
  const double n = std::trunc(degree);
  if (n < 0) return 0;
  const bool exact = rest == 0 && std::abs(x) <= 1;
  if (n > (exact ? kMaxSteps : kMaxGrowingSteps)) return chebyshev_closed<kind>(x, n);
  const double slope = kind == Chebyshev::T ? 1 : 2;
  const double start = kind == Chebyshev::V ? -1 : kind == Chebyshev::W ? 1 : 0;
  return recurrence(x, n, slope * x + start + slope * rest, 1,
                    of_two([rest](double y, double, double p, double before) {
                      return 2 * (y * p + rest * p) - before;
                    }));
}
template <Chebyshev kind>
double chebyshev(double x, double degree) {
  return chebyshev_at<kind>(x, 0, degree);
}
// On [0, 1]: of 2 x - 1.
template <Chebyshev kind>
double shifted_chebyshev(double x, double degree) {
  const double twice = 2 * x, y = twice - 1, one = twice - y;
  const double rest = (twice - (y + one)) + (one - 1);
  return chebyshev_at<kind>(y, std::isfinite(rest) ? rest : 0, degree);
}

// A polynomial without a closed form, up to a degree.
template <class Step>
double of_degree(double x, double degree, double highest, double second, double other, Step step) {
  if (std::isnan(x) || std::isnan(degree)) return std::numeric_limits<double>::quiet_NaN();
  const double n = std::trunc(degree);
  if (n < 0) return 0;
  if (n > highest) return std::numeric_limits<double>::quiet_NaN();
  return recurrence(x, n, second, other, step);
}
inline double hermite_h(double x, double n) {
  return of_degree(
      x, n, kHighestHermite, 2 * x, 1,
      of_two([](double y, double k, double p, double q) { return 2 * (y * p - k * q); }));
}
inline double hermite_he(double x, double n) {
  return of_degree(x, n, kHighestHermite, x, 1,
                   of_two([](double y, double k, double p, double q) { return y * p - k * q; }));
}
inline double laguerre_l(double x, double n) {
  return of_degree(x, n, kHighestDegree, 1 - x, -x,
                   by_difference([](double y, double k, double p, double d) {
                     return (k * d - y * p) / (k + 1);
                   }));
}
inline double legendre_p(double x, double n) {
  const double size = std::abs(x);
  const double value = of_degree(size, n, kHighestDegree, size, size - 1,
                                 by_difference([](double y, double k, double p, double d) {
                                   return (k * d + (2 * k + 1) * (y - 1) * p) / (k + 1);
                                 }));
  return x < 0 && is_odd(std::trunc(n)) ? -value : value;
}

}  // namespace treadle::simd::scalar
