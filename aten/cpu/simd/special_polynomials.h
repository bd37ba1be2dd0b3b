// Orthogonal polynomials of one number, of a degree that is a number, too (its fraction is cut
// off; of a negative degree they are 0). By their recurrences, in double; Chebyshev's of a high
// degree by their closed forms.
#pragma once

#include <cmath>
#include <limits>

namespace treadle::simd::scalar {

inline constexpr double kMostSteps = 64;         // of a recurrence that a closed form can replace
inline constexpr double kHighestDegree = 65536;  // of the others; NaN above
inline constexpr double kHighestHermite = 1024;  // beyond, all overflow

// The first `n` steps of p(k + 1) = next(k, p(k), p(k - 1)).
template <class Next>
double recurrence(double n, double first, double second, Next next) {
  if (n == 0) return first;
  double before = first, current = second;
  for (double k = 1; k < n && std::isfinite(current); k += 1) {
    const double after = next(k, current, before);
    before = current;
    current = after;
  }
  return current;
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

template <Chebyshev kind>
double chebyshev(double x, double degree) {
  if (std::isnan(x) || std::isnan(degree)) return std::numeric_limits<double>::quiet_NaN();
  const double n = std::trunc(degree);
  if (n < 0) return 0;
  if (n > kMostSteps) return chebyshev_closed<kind>(x, n);
  const double slope = kind == Chebyshev::T ? 1 : 2;
  const double start = kind == Chebyshev::V ? -1 : kind == Chebyshev::W ? 1 : 0;
  return recurrence(n, 1, slope * x + start,
                    [x](double, double p, double before) { return 2 * x * p - before; });
}

// A polynomial without a closed form, up to a degree.
template <class Next>
double of_degree(double x, double degree, double highest, double second, Next next) {
  if (std::isnan(x) || std::isnan(degree)) return std::numeric_limits<double>::quiet_NaN();
  const double n = std::trunc(degree);
  if (n < 0) return 0;
  if (n > highest) return std::numeric_limits<double>::quiet_NaN();
  return recurrence(n, 1, second, next);
}
inline double hermite_h(double x, double n) {
  return of_degree(x, n, kHighestHermite, 2 * x,
                   [x](double k, double p, double before) { return 2 * (x * p - k * before); });
}
inline double hermite_he(double x, double n) {
  return of_degree(x, n, kHighestHermite, x,
                   [x](double k, double p, double before) { return x * p - k * before; });
}
inline double laguerre_l(double x, double n) {
  return of_degree(x, n, kHighestDegree, 1 - x, [x](double k, double p, double before) {
    return ((2 * k + 1 - x) * p - k * before) / (k + 1);
  });
}
inline double legendre_p(double x, double n) {
  return of_degree(x, n, kHighestDegree, x, [x](double k, double p, double before) {
    return ((2 * k + 1) * x * p - k * before) / (k + 1);
  });
}

}  // namespace treadle::simd::scalar
