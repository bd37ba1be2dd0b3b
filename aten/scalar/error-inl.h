// The error function, those of the normal distribution, and gelu, of vectors: floats by series, in
// double where digits would be lost.
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_ERROR_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_ERROR_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_ERROR_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_ERROR_INL_H_
#endif

#include "aten/scalar/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// erfc(x) for x >= 0, to 2^-29.9 of it where it is a float's: exp(-x^2) q(t) / (1 + 2x) with t =
// (x - 2) / (x + 2); q was fitted on 0 <= x <= 10.2.
HWY_INLINE Vec<double> erfc_positive(Vec<double> x) {
  constexpr double kQ[] = {7.9351516940042e-05,  1.6925304757917e-04,  -4.0071873991330e-04,
                           -1.4206321233598e-03, 1.2527163914520e-03,  8.7090271116811e-03,
                           -8.0308754705396e-03, -5.4217815596076e-02, 1.6405104060988e-01,
                           -1.6603052242704e-01, -9.2763820663843e-02, 1.2769783826877e+00};
  x = where(x > set(11.0), set(11.0), x);
  // One division: of 1 by both denominators.
  const Vec<double> far = x + set(2.0), scale = set(1.0) + x + x;
  const Vec<double> inverse = set(1.0) / (far * scale);
  const Vec<double> q = polynomial(kQ, Vec<double>((x - set(2.0)) * scale * inverse));
  return exp2_of_float(x * x * set(-std::numbers::log2e)) * q * far * inverse;
}
// ndtr(-x) for x >= 0, to 2^-29.9 of it where it is a float's. Few numbers are above 5.
HWY_INLINE Vec<double> normal_tail(Vec<double> x) {
  const Vec<double> root = polynomial(tables::kNormalTailRoot, x), half = square(square(root));
  const Mask<double> near = x < set(5.0);
  if (HWY_LIKELY(all_lanes(near))) return half * half;
  return where(near, half * half, erfc_positive(x * set(scalar::kHalfRoot)) * set(0.5));
}
// erf(x) for |x| < 1/2, by the powers of x^2 up to the last above 2^-30.
HWY_INLINE Vec<double> erf_small(Vec<double> x) {
  constexpr double kSeries[] = {1.2055332981789664e-04, -8.548327023450853e-04,
                                5.2239776254421878e-03, -2.6866170645131252e-02,
                                1.1283791670955126e-01, -3.7612638903183754e-01,
                                1.1283791670955126};
  return x * polynomial(kSeries, x * x);
}
// x + x p(x^2 - 25/32) up to 5/4, where the powers of x^2 would have larger terms; beyond, 1 -
// erfc(x), where the error of erfc matters little. It is 1 from 4 on.
template <class V>
HWY_INLINE V erf_float(V x) {
  const Tag<float> d;
  const V size = {at_most(hn::Abs(x.raw), 4.0f)}, exponent = polynomial(tables::kErfcLog2, size);
  const Rounded power = round_product(exponent.raw, 1.0f, 127);
  const V s = {hn::Sub(exponent.raw, power.n)};
  const auto one = hn::Set(d, 1.0f);
  const auto fraction = hn::MulAdd(s.raw, polynomial(tables::kExp2, s).raw, one);
  const V far = {hn::NegMulAdd(power_of_two(power.bits), fraction, one)};
  const V t = {hn::MulAdd(size.raw, size.raw, hn::Set(d, -0.78125f))};
  const V near = {hn::MulAdd(x.raw, polynomial(tables::kErfSmallFloat, t).raw, x.raw)};
  return where(size < set(1.25f), near, copysign(far, x));
}
template <class T>
HWY_INLINE Vec<T> erf(Vec<T> x) {
  if constexpr (kThroughDouble<T> && kFusesProducts) {
    return erf_float(x);
  } else if constexpr (kThroughDouble<T>) {
    const auto f = [](Vec<double> v) HWY_ATTR {
      const Vec<double> size = abs(v), far = copysign(set(1.0) - erfc_positive(size), v);
      return where(size < set(0.5), erf_small(v), far);
    };
    return through_double(f, x);
  } else {
    return map_lanes([](T v) { return std::erf(v); }, x);
  }
}
template <class T>
HWY_INLINE Vec<T> erfc(Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    return through_double(
        [](Vec<double> v) HWY_ATTR {
          const Vec<double> tail = normal_tail(abs(v) * set(std::numbers::sqrt2)), y = tail + tail;
          return where(v < set(0.0), set(2.0) - y, y);
        },
        x);
  } else {
    return map_lanes([](T v) { return std::erfc(v); }, x);
  }
}
// The inverse of erf at 0 <= size < 1, where rest = 1 - size^2 is at least 2^-23; for a float.
template <class V>
HWY_INLINE V erfinv_of(V size, V rest) {
  const V w = log2_of_float(rest) * set(-std::numbers::ln2);
  const Mask<double> is_central = w < set(6.0);
  // The even and the odd powers at once, as one sum would wait for each product.
  const V square = w * w, even = polynomial(tables::kErfinvEven, square);
  const V odd = polynomial(tables::kErfinvOdd, square);
  const V central = {hn::MulAdd(odd.raw, w.raw, even.raw)};
  if (HWY_LIKELY(all_lanes(is_central))) return size * central;
  const V tail = polynomial(tables::kErfinvTail, V(sqrt(w) - set(3.0)));
  return size * where(is_central, central, tail);
}
template <class T>
HWY_INLINE Vec<T> erfinv(Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    const auto inverse = [](Vec<double> size) HWY_ATTR {
      const auto one = hn::Set(Tag<double>(), 1.0);
      return erfinv_of(size, Vec<double>{hn::NegMulAdd(size.raw, size.raw, one)});
    };
    const Vec<T> size = abs(x), one = set(T(1)), y = through_double(inverse, size);
    const Vec<T> end = where(size == one, set(kInf<T>), set(kNaN<T>));
    return copysign(where(size < one, y, end), x);
  } else {
    return map_lanes([](T v) { return scalar::erfinv(v); }, x);
  }
}
// The distribution function of the standard normal distribution, and its inverse.
template <class T>
HWY_INLINE Vec<T> ndtr(Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    const auto below = [](Vec<double> v) HWY_ATTR {
      const Vec<double> tail = normal_tail(abs(v));
      return where(v < set(0.0), tail, set(1.0) - tail);
    };
    return through_double(below, x);
  } else {
    return InDouble<scalar::ndtr>()(x);
  }
}
template <class T>
HWY_INLINE Vec<T> ndtri(Vec<T> p) {
  if constexpr (kThroughDouble<T>) {
    const auto inverse = [](Vec<double> v) HWY_ATTR {
      const Mask<double> lower = v < set(0.5);
      const Vec<double> tail = where(lower, v, set(1.0) - v), rest = tail + tail;
      const Vec<double> size = set(1.0) - rest;
      const Vec<double> z = erfinv_of(size, rest * (set(1.0) + size)) * set(std::numbers::sqrt2);
      return where(lower, -z, z);
    };
    const Mask<T> is_central = logical_and(p >= set(T(0x1p-24)), p < set(T(1)));
    return fill_lanes(is_central, through_double(inverse, p), in_double<scalar::ndtri, T>, p);
  } else {
    return InDouble<scalar::ndtri>()(p);
  }
}
// exp(x^2) erfc(x) for x >= 0, to 2^-32 of it.
template <class V>
HWY_INLINE V erfcx_positive(V x) {
  const V bounded = where(x > set(1e30), V(set(1e30)), x);
  const V t = (bounded - set(3.0)) / (bounded + set(3.0));
  return polynomial(tables::kErfcxFloat, t) / (set(1.0) + x + x);
}
template <class T>
HWY_INLINE Vec<T> erfcx(Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    const auto scaled = [](Vec<double> v) HWY_ATTR {
      const Vec<double> y = erfcx_positive(abs(v));
      const Mask<double> below = v < set(0.0);
      if (no_lanes(below)) return y;
      const Vec<double> power = exp_of_float(v * v);
      return where(below, power + power - y, y);
    };
    return through_double(scaled, x);
  } else {
    return InDouble<scalar::erfcx>()(x);
  }
}
// With h = erfc(|x| / sqrt(2)) / 2, log(h) below zero and log(1 - h) above it.
template <class T>
HWY_INLINE Vec<T> log_ndtr(Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    const auto logarithm = [](Vec<double> v) HWY_ATTR {
      const Vec<double> zero = set(0.0), one = set(1.0), half = v * v * set(-0.5);
      const Vec<double> scaled = erfcx_positive(abs(v) * set(scalar::kHalfRoot)) * set(0.5);
      const Mask<double> below = v < zero;
      const Vec<double> tail = where(below, one - scaled, exp_of_float(half) * scaled);
      const Vec<double> y = log1p_of_float(-tail);
      return where(below, y + half, y);
    };
    return where(isnan(x), x, -abs(through_double(logarithm, x)));
  } else {
    return InDouble<scalar::log_ndtr>()(x);
  }
}
// a - b c, rounded once where the target can.
HWY_INLINE Vec<float> minus_product(Vec<float> a, Vec<float> b, Vec<float> c) {
  return {hn::NegMulAdd(b.raw, c.raw, a.raw)};
}
// The normal density at zero.
inline constexpr double kNormalPeak = 0.3989422804014327;
// exp(-x^2 / 2) for x >= 3, and ndtr(-x) divided by it. The square has two parts, because an error
// in it is multiplied by the square.
struct NormalEnd {
  Vec<float> power, ratio;
};
HWY_INLINE NormalEnd normal_end(Vec<float> x) {
  const Tag<float> d;
  const Vec<float> size = {at_most(x.raw, 15.0f)}, square = size * size;
  const auto lost = hn::MulAdd(size.raw, size.raw, hn::Neg(square.raw));
  const Vec<float> power = exp_float(square * set(-0.5f));
  const Vec<float> inverse = set(1.0f) / size;
  return {minus_product(power, power, Vec<float>{hn::Mul(lost, hn::Set(d, 0.5f))}),
          polynomial(tables::kNormalRatio, inverse) * inverse};
}
// max(x, 0) - |x| ndtr(-|x|), which keeps the digits of small values below zero. A polynomial gives
// most numbers their value. What those far from zero need is computed where there is such a lane.
HWY_INLINE Vec<float> gelu_float(Vec<float> x) {
  const Vec<float> size = abs(x), bent = {at_least(x.raw, 0.0f)};
  const Vec<float> root = polynomial_by_halves(tables::kNormalTailRootFloat, size - set(2.75f));
  const Vec<float> y = minus_product(bent, root * size, root);
  const Mask<float> near = size < set(3.125f);
  if (HWY_LIKELY(all_lanes(near))) return y;
  const NormalEnd end = normal_end(size);
  // The last product is the only one that may be denormal.
  const Vec<float> above = x * (set(1.0f) - end.power * end.ratio);
  const Vec<float> far = where(x < set(0.0f), end.power * (end.ratio * x), above);
  return where(near, y, far);
}
template <class T>
HWY_INLINE Vec<T> gelu(Vec<T> x) {
  if constexpr (kThroughDouble<T>) return gelu_float(x);
  return x * set(T(0.5)) * erfc(x * set(-T(1) / std::numbers::sqrt2_v<T>));
}
// The same of the derivative ndtr(x) + x p(x), where p is the density: that of -|x|, or 1 less it.
HWY_INLINE Vec<float> gelu_slope_float(Vec<float> x) {
  const Vec<float> size = abs(x);
  const Vec<float> tail = polynomial_by_halves(tables::kNormalTailFloat, size - set(1.5f));
  const Vec<float> root = polynomial_by_halves(tables::kNormalDensityRoot, size * size - set(4.5f));
  Vec<float> y = minus_product(tail, size * root, root);
  const Mask<float> near = size < set(3.0f);
  if (!HWY_LIKELY(all_lanes(near))) {
    const NormalEnd end = normal_end(size);
    const Vec<float> factor = size * set(float(kNormalPeak));
    y = where(near, y, minus_product(end.power * end.ratio, end.power, factor));
  }
  return where(x < set(0.0f), y, set(1.0f) - y);
}
template <class T>
HWY_INLINE Vec<T> gelu_slope(Vec<T> x) {
  if constexpr (kThroughDouble<T>) return gelu_slope_float(x);
  const Vec<T> below = erfc(x * set(-T(1) / std::numbers::sqrt2_v<T>)) * set(T(0.5));
  return below + x * exp(x * x * set(T(-0.5))) * set(T(kNormalPeak));
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
