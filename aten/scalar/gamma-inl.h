// Gamma functions of vectors: floats by series in double, doubles lane by lane.
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_GAMMA_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_GAMMA_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_GAMMA_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_GAMMA_INL_H_
#endif

#include "aten/scalar/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// log |gamma(x)| of a float's magnitude x > 0: a polynomial on [1, 3), with the zeros as factors;
// below 1 that of x + 1, less log(x); from 3 on Stirling's series.
template <class V>
HWY_INLINE V lgamma_positive(V x) {
  const V one = set(1.0);
  const Mask<double> is_near = x < set(3.0), below = x < one;
  const V logarithm = log_of_float(V(where(logical_xor(is_near, below), one, x)));
  V far = x;
  if (!all_lanes(is_near)) {
    const V inverse = one / x;
    const V rest = inverse * polynomial(tables::kStirling, V(inverse * inverse));
    far = (x - set(0.5)) * logarithm - x + (set(0.91893853320467274178) + rest);
    if (no_lanes(is_near)) return far;
  }
  const V y = where(below, x + one, x) - set(2.0);
  const V near = y * (y + one) * polynomial(tables::kLogGamma, y) - logarithm;
  return where(is_near, near, far);
}
// sin(pi x) for |x| <= 1/2
template <class V>
HWY_INLINE V sine_of_turn(V x) {
  return x * polynomial(tables::kSinePi, V(x * x));
}
template <class V>
HWY_INLINE V lgamma_of_float(V x) {
  const V size = abs(x), y = lgamma_positive(size);
  const Mask<double> below = x < set(0.0);
  if (no_lanes(below)) return y;
  // gamma(x) gamma(-x) = -pi / (x sin(pi x))
  const V sine = sine_of_turn(V(abs(size - round(size))));
  return where(below, log_of_float(V(set(std::numbers::pi) / (size * sine))) - y, y);
}
template <class T>
HWY_INLINE Vec<T> lgamma(Vec<T> x) {
  const auto slow = [](T v) { return scalar::lgamma(v); };
  if constexpr (kThroughDouble<T>) {
    Vec<T> y = through_double([](Vec<double> v) HWY_ATTR { return lgamma_of_float(v); }, x);
    const Vec<T> zero = set(T(0));
    const Mask<T> at_pole = logical_and(x <= zero, round(x) == x);
    y = where(logical_or(at_pole, isinf(x)), set(kInf<T>), y);
    // Zeros below zero, near which digits are lost.
    const Mask<T> is_exact = logical_or(x >= zero, logical_not(abs(y) < set(T(0.02))));
    return fill_lanes(is_exact, y + zero, slow, x);
  } else {
    return map_lanes(slow, x);
  }
}
// The steps of scalar::digamma, up to 6: six terms of the recurrence are one fraction.
template <class V>
HWY_INLINE V digamma_of_float(V x) {
  const V zero = set(0.0), one = set(1.0);
  const Mask<double> below = x < zero;
  V z = x, result = zero;
  if (!no_lanes(below)) {
    const V part = x - round(x), size = abs(part);
    // The cosine of a part of half a turn is the sine of what it lacks.
    const V cotangent = sine_of_turn(V(set(0.5) - size)) / sine_of_turn(part);
    result = where(below, cotangent * set(-std::numbers::pi), zero);
    z = where(below, one - x, x);
  }
  const Mask<double> is_small = z < set(6.0);
  if (!no_lanes(is_small)) {
    const V u = z * (z + set(5.0));  // u (u + 4) (u + 6) = z (z + 1) ... (z + 5)
    const V slope = (z + z + set(5.0)) * ((set(3.0) * u + set(20.0)) * u + set(24.0));
    const V sum = slope / (u * (u + set(4.0)) * (u + set(6.0)));
    result = where(is_small, result - sum, result);
    z = where(is_small, z + set(6.0), z);
  }
  const V inverse = one / z, square = inverse * inverse;
  return result + log_of_float(z) - set(0.5) * inverse -
         square * polynomial(tables::kDigamma, square);
}
template <class T>
HWY_INLINE Vec<T> digamma(Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    const Vec<T> zero = set(T(0)), infinite = set(kInf<T>);
    Vec<T> y = through_double([](Vec<double> v) HWY_ATTR { return digamma_of_float(v); }, x);
    const Mask<T> at_pole = logical_and(x < zero, round(x) == x);
    y = where(logical_or(at_pole, isnan(x)), set(kNaN<T>), where(x == infinite, infinite, y));
    return where(x == zero, copysign(infinite, -x), y);
  } else {
    return map_lanes([](T v) { return scalar::digamma(v); }, x);
  }
}

// Of a in (0, 30] and x in (0, 14], or up to a + 1: the sum of x^n / ((a + 1) ... (a + n)) as a
// fraction, and the derivative of its numerator by a; less than 1e-10 of it is left out. Each lane
// takes all steps, so that its sum does not depend on the others.
struct GammaSeries {
  Vec<double> numerator, slope, denominator, end;  // end = a + the number of steps + 1
};
template <bool kSlope, class V>
HWY_INLINE GammaSeries gamma_series(V a, V x) {
  constexpr int kSteps = 48;
  const V one = set(1.0), zero = set(0.0);
  V power = one, at = a, sum = one, slope = zero, product = one;
  for (int n = 0; n < kSteps; ++n) {
    at = at + one;
    power = power * x;
    if constexpr (kSlope) {
      slope = {hn::MulAdd(slope.raw, at.raw, sum.raw)};
      product = product * at;
    }
    sum = {hn::MulAdd(sum.raw, at.raw, power.raw)};
  }
  return {sum, slope, product, at + one};
}
template <class T>
HWY_INLINE Mask<T> in_gamma_series(Vec<T> a, Vec<T> x, T least, T most) {
  const Mask<T> near = logical_or(x <= set(most), x <= a);
  const Mask<T> positive = logical_and(a >= set(least), x > set(T(0)));
  return logical_and(logical_and(a <= set(T(30)), near), positive);
}
// The lower function: x^a e^-x / gamma(a + 1) times the series, whose numerator over that gamma
// number is the numerator over gamma(end), where Stirling's series is short.
template <class V>
HWY_INLINE V igamma_of_float(V a, V x) {
  const GammaSeries series = gamma_series<false>(a, x);
  const V inverse = set(1.0) / V(series.end), square = inverse * inverse;
  const V stirling = (set(1.0 / 12) - square * (set(1.0 / 360) - square * set(1.0 / 1260)));
  const V log_gamma = (V(series.end) - set(0.5)) * log(V(series.end)) - V(series.end) +
                      (set(0.91893853320467274178) + inverse * stirling);
  return exp(V(a * log(x) - x - log_gamma)) * V(series.numerator);
}
template <class T>
HWY_INLINE Vec<T> igamma(Vec<T> a, Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    const auto slow = in_double2<scalar::igamma, T>;
    const auto lower = [](Vec<double> v, Vec<double> u) HWY_ATTR { return igamma_of_float(v, u); };
    return fill_lanes(in_gamma_series(a, x, T(1e-6), T(14)), through_double(lower, a, x), slow, a,
                      x);
  } else {
    return InDouble2<scalar::igamma>()(a, x);
  }
}
// What is left of 1, where that has enough digits.
template <class T>
HWY_INLINE Vec<T> igammac(Vec<T> a, Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    const auto slow = in_double2<scalar::igammac, T>;
    const auto upper = [](Vec<double> v, Vec<double> u)
                           HWY_ATTR { return set(1.0) - igamma_of_float(v, u); };
    const Vec<T> y = through_double(upper, a, x);
    const Mask<T> is_exact = logical_and(in_gamma_series(a, x, T(1e-6), T(14)), y > set(T(2e-4)));
    return fill_lanes(is_exact, y, slow, a, x);
  } else {
    return InDouble2<scalar::igammac>()(a, x);
  }
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
