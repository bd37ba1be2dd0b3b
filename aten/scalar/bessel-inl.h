// Bessel and Airy functions of vectors: floats by series in double, doubles lane by lane.
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_BESSEL_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_BESSEL_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_BESSEL_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_BESSEL_INL_H_
#endif

#include "aten/scalar/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// Clenshaw's recurrence, for a float: without the first terms, of which it shows nothing.
template <const auto& kTerms, class V>
HWY_INLINE V chebyshev_of_float(V t) {
  constexpr size_t kCount = std::size(kTerms);
  constexpr size_t kFirst = [] {
    size_t first = 0;
    while (kTerms[first] > -1e-11 && kTerms[first] < 1e-11) ++first;
    return first;
  }();
  const Tag<double> d;
  const auto twice = hn::Add(t.raw, t.raw);
  auto next = hn::Set(d, kTerms[kFirst]), after = hn::Zero(d);
#pragma GCC unroll 32
  for (size_t i = kFirst + 1; i + 1 < kCount; ++i) {
    const auto sum = hn::MulAdd(twice, next, hn::Sub(hn::Set(d, kTerms[i]), after));
    after = next;
    next = sum;
  }
  return {hn::MulAdd(t.raw, next, hn::Sub(hn::Set(d, kTerms[kCount - 1]), after))};
}
// factor * (the series up to 8), and the series beyond it.
template <const auto& kSmall, const auto& kLarge, class V>
HWY_INLINE V scaled_bessel(V size, V factor) {
  const Mask<double> is_small = size <= set(8.0);
  const Vec<double> near = factor * chebyshev_of_float<kSmall>(size * set(0.25) - set(1.0));
  if (HWY_LIKELY(all_lanes(is_small))) return near;
  const Vec<double> far = chebyshev_of_float<kLarge>(set(16.0) / size - set(1.0)) / sqrt(size);
  return where(is_small, near, far);
}
template <class V>
HWY_INLINE V i0e_of_float(V x) {
  return scaled_bessel<tables::kI0Small, tables::kI0Large>(V(abs(x)), V(set(1.0)));
}
template <class V>
HWY_INLINE V i1e_of_float(V x) {
  const Vec<double> size = abs(x);
  return copysign(scaled_bessel<tables::kI1Small, tables::kI1Large>(size, size), x);
}
// Times e^|x|, which ends at what is more than a float in any case.
template <class V>
HWY_INLINE V unscaled(V y, V x) {
  return y * exp(minimum(abs(x), set(200.0)));
}
template <class T>
HWY_INLINE Vec<T> i0e(Vec<T> x) {
  if constexpr (kThroughDouble<T>)
    return through_double([](Vec<double> v) HWY_ATTR { return i0e_of_float(v); }, x);
  else
    return InDouble<scalar::i0e>()(x);
}
template <class T>
HWY_INLINE Vec<T> i1e(Vec<T> x) {
  if constexpr (kThroughDouble<T>)
    return through_double([](Vec<double> v) HWY_ATTR { return i1e_of_float(v); }, x);
  else
    return InDouble<scalar::i1e>()(x);
}
template <class T>
HWY_INLINE Vec<T> i0(Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    const auto f = [](Vec<double> v) HWY_ATTR { return unscaled(i0e_of_float(v), v); };
    return where(isinf(x), abs(x), through_double(f, x));
  } else {
    return InDouble<scalar::i0>()(x);
  }
}
template <class T>
HWY_INLINE Vec<T> i1(Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    const auto f = [](Vec<double> v) HWY_ATTR { return unscaled(i1e_of_float(v), v); };
    return where(isinf(x), x, through_double(f, x));
  } else {
    return InDouble<scalar::i1>()(x);
  }
}

// exp(x) K(x) for x > 0, or K(x).
template <int kOrder, bool kScaled, class V>
HWY_INLINE V bessel_k_of_float(V x) {
  constexpr auto& kI = kOrder == 0 ? tables::kI0Near : tables::kI1Near;
  constexpr auto& kNear = kOrder == 0 ? tables::kK0Near : tables::kK1Near;
  constexpr auto& kFar = kOrder == 0 ? tables::kK0Far : tables::kK1Far;
  const V far = polynomial(kFar, V(set(4.0) / x - set(1.0))) / sqrt(x);
  const Mask<double> is_near = x <= set(2.0);
  const V power = exp_of_float(kScaled ? x : -x);
  const V scaled = kScaled ? far : far * power;
  if (no_lanes(is_near)) return scaled;
  const V square = x * x, logarithm = log_of_float(V(x * set(0.5)));
  const V first = polynomial(kNear, square), second = logarithm * polynomial(kI, square);
  const V near = kOrder == 0 ? first - second : first / x + second * x;
  return where(is_near, kScaled ? near * power : near, scaled);
}
template <int kOrder, bool kScaled, class T>
HWY_INLINE Vec<T> bessel_k_float(Vec<T> x) {
  const auto f = [](Vec<double> v) HWY_ATTR { return bessel_k_of_float<kOrder, kScaled>(v); };
  const Vec<T> zero = set(T(0)), y = through_double(f, x);
  const Mask<T> is_inside = logical_and(x > zero, isfinite(x));
  const Vec<T> end = where(x == zero, set(kInf<T>), where(x > zero, zero, set(kNaN<T>)));
  return where(is_inside, y, end);
}
template <class T>
HWY_INLINE Vec<T> bessel_k0(Vec<T> x) {
  if constexpr (kThroughDouble<T>)
    return bessel_k_float<0, false>(x);
  else
    return InDouble<scalar::k0>()(x);
}
template <class T>
HWY_INLINE Vec<T> bessel_k1(Vec<T> x) {
  if constexpr (kThroughDouble<T>)
    return bessel_k_float<1, false>(x);
  else
    return InDouble<scalar::k1>()(x);
}
template <class T>
HWY_INLINE Vec<T> scaled_bessel_k0(Vec<T> x) {
  if constexpr (kThroughDouble<T>)
    return bessel_k_float<0, true>(x);
  else
    return InDouble<scalar::scaled_k0>()(x);
}
template <class T>
HWY_INLINE Vec<T> scaled_bessel_k1(Vec<T> x) {
  if constexpr (kThroughDouble<T>)
    return bessel_k_float<1, true>(x);
  else
    return InDouble<scalar::scaled_k1>()(x);
}

// J or Y for 0 < x < 10^5. Up to 8 by polynomials, to which Y adds a logarithm; beyond, the modulus
// and phase of an oscillation.
enum class BesselKind { J, Y };
template <BesselKind kKind, int kOrder, class V>
HWY_INLINE V bessel_of_float(V x) {
  constexpr auto& kJ = kOrder == 0 ? tables::kJ0Small : tables::kJ1Small;
  constexpr auto& kY = kOrder == 0 ? tables::kY0Small : tables::kY1Small;
  constexpr auto& kP = kOrder == 0 ? tables::kP0Large : tables::kP1Large;
  constexpr auto& kQ = kOrder == 0 ? tables::kQ0Large : tables::kQ1Large;
  const Mask<double> is_small = x <= set(8.0);
  V small = x;
  if (!no_lanes(is_small)) {
    const V t = x * x * set(1.0 / 32) - set(1.0);
    small = polynomial(kJ, t);
    if constexpr (kKind == BesselKind::Y) {
      const V turn = set(2 / std::numbers::pi);
      small = polynomial(kY, t) + turn * log_of_float(x) * small;
      if constexpr (kOrder == 1) small = small * x - turn / x;
    } else if constexpr (kOrder == 1) {
      small = small * x;
    }
    if (all_lanes(is_small)) return small;
  }
  const V inverse = set(1.0) / x, z = set(64.0) * inverse * inverse;
  const V p = polynomial(kP, z), q = polynomial(kQ, z) * inverse;
  const Angle angle = angle_of_float(x);
  // sqrt(2) times the cosine and the sine of x - pi / 4, or x - 3 pi / 4.
  const V sum = angle.cosine + angle.sine, difference = angle.sine - angle.cosine;
  const V c = kOrder == 0 ? sum : difference, s = kOrder == 0 ? difference : -sum;
  const V scale = sqrt(inverse) * set(std::numbers::inv_sqrtpi);
  const V large = scale * (kKind == BesselKind::J ? p * c - q * s : p * s + q * c);
  return where(is_small, small, large);
}
template <class T>
HWY_INLINE Vec<T> bessel_j0(Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    const auto f = [](Vec<double> v) HWY_ATTR { return bessel_of_float<BesselKind::J, 0>(abs(v)); };
    return or_lanes(x, T(kAngleLimit), through_double(f, x), in_double<scalar::bessel_j0, T>);
  } else {
    return InDouble<scalar::bessel_j0>()(x);
  }
}
template <class T>
HWY_INLINE Vec<T> bessel_j1(Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    const auto f = [](Vec<double> v) HWY_ATTR {
      const Vec<double> y = bessel_of_float<BesselKind::J, 1>(abs(v));
      return where(signbit(v), -y, y);
    };
    return or_lanes(x, T(kAngleLimit), through_double(f, x), in_double<scalar::bessel_j1, T>);
  } else {
    return InDouble<scalar::bessel_j1>()(x);
  }
}
template <int kOrder, class T>
HWY_INLINE Vec<T> bessel_y_float(Vec<T> x) {
  const auto f = [](Vec<double> v) HWY_ATTR { return bessel_of_float<BesselKind::Y, kOrder>(v); };
  constexpr auto kSlow =
      kOrder == 0 ? in_double<scalar::bessel_y0, T> : in_double<scalar::bessel_y1, T>;
  const Vec<T> zero = set(T(0)), y = or_lanes(x, T(kAngleLimit), through_double(f, x), kSlow);
  return where(x == zero, set(-kInf<T>), where(x < zero, set(kNaN<T>), y));
}
template <class T>
HWY_INLINE Vec<T> bessel_y0(Vec<T> x) {
  if constexpr (kThroughDouble<T>)
    return bessel_y_float<0>(x);
  else
    return InDouble<scalar::bessel_y0>()(x);
}
template <class T>
HWY_INLINE Vec<T> bessel_y1(Vec<T> x) {
  if constexpr (kThroughDouble<T>)
    return bessel_y_float<1>(x);
  else
    return InDouble<scalar::bessel_y1>()(x);
}
template <class T>
HWY_INLINE Vec<T> spherical_bessel_j0(Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    const auto f = [](Vec<double> v) HWY_ATTR { return angle_of_float(v).sine / v; };
    const Vec<T> y =
        or_lanes(x, T(kAngleLimit), through_double(f, x), in_double<scalar::spherical_j0, T>);
    return where(x == set(T(0)), set(T(1)), y);
  } else {
    return InDouble<scalar::spherical_j0>()(x);
  }
}

// Ai in [-11, 10] by the Taylor series about the nearest point of the table, up to what a float
// shows: y'' = x y gives its terms.
template <class V>
HWY_INLINE V airy_near(V x) {
  constexpr int64_t kLanes = V::kLanes;
  const Tag<double> d;
  const V place = round(V(x + x + set(22.0)));
  HWY_ALIGN double places[kLanes];
  HWY_ALIGN double values[kLanes];
  HWY_ALIGN double slopes[kLanes];
  hn::Store(place.raw, d, places);
  for (int64_t i = 0; i < kLanes; ++i) {
    const bool is_known = places[i] >= 0 && places[i] <= 42;
    const double(&known)[2] = tables::kAiry[is_known ? static_cast<size_t>(places[i]) : 0];
    values[i] = known[0];
    slopes[i] = known[1];
  }
  const V center = place * set(0.5) - set(11.0), h = x - center;
  const V by_center = center * h * h, by_step = h * h * h;
  V before = set(0.0), current = {hn::Load(d, values)}, next = V{hn::Load(d, slopes)} * h;
  V sum = current + next;
#pragma GCC unroll 16
  for (int k = 1; k < 13; ++k) {
    const V after = (by_center * current + by_step * before) * set(1.0 / (double(k + 1) * k));
    before = current;
    current = next;
    next = after;
    sum = sum + after;
  }
  return sum;
}
// Beyond, by the asymptotic expansion in 1 / zeta with zeta = 2/3 |x|^(3/2).
template <class V>
HWY_INLINE V airy_far(V x) {
  constexpr const auto& kU = tables::kAiryAsymptotic;
  constexpr double kEven[] = {kU[8], kU[6], kU[4], kU[2], kU[0]};
  constexpr double kOdd[] = {kU[7], kU[5], kU[3], kU[1]};
  const Mask<double> above = x > set(0.0);
  const V size = abs(x), root = sqrt(size), zeta = size * root * set(2.0 / 3);
  const V inverse = set(1.0) / zeta, square = inverse * inverse;
  const V z = where(above, square, -square);
  const V even = polynomial(kEven, z), odd = polynomial(kOdd, z) * inverse;
  const V scale = set(1.0) / sqrt(V(root * set(std::numbers::pi)));
  const V falling = set(0.5) * exp_of_float(-zeta) * (even - odd);
  if (all_lanes(above)) return scale * falling;
  const Angle angle = angle_of_float(zeta);
  const V sum = angle.sine + angle.cosine, difference = angle.cosine - angle.sine;
  const V waving = set(std::numbers::sqrt2 / 2) * (sum * even - difference * odd);
  return scale * where(above, falling, waving);
}
template <class T>
HWY_INLINE Vec<T> airy_ai(Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    const auto f = [](Vec<double> v) HWY_ATTR {
      const Mask<double> is_near = logical_and(v >= set(-11.0), v <= set(10.0));
      if (all_lanes(is_near)) return airy_near(v);
      return where(is_near, airy_near(v), airy_far(v));
    };
    const Mask<T> is_inside = logical_and(x > set(T(-2000)), x < set(T(2000)));
    return fill_lanes(is_inside, through_double(f, x), in_double<scalar::airy_ai, T>, x);
  } else {
    return InDouble<scalar::airy_ai>()(x);
  }
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
