// Modified Bessel functions of the first kind, of vectors: floats by the series of
// special_bessel.h, doubles lane by lane.
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
  if (HWY_LIKELY(hn::AllTrue(Tag<double>(), is_small.raw))) return near;
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

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
