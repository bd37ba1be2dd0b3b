// Special functions of vectors: lane by lane, in double (special_*.h).
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_SPECIAL_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_SPECIAL_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_SPECIAL_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_SPECIAL_INL_H_
#endif

#include "aten/scalar/special_bessel.h"
#include "aten/scalar/special_gamma.h"
#include "aten/scalar/special_normal.h"
#include "aten/scalar/special_polynomials.h"
#include "aten/scalar/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// A function of numbers in double, for a T.
template <double (*kFunction)(double), class T>
T in_double(T v) {
  return static_cast<T>(kFunction(static_cast<double>(v)));
}
template <double (*kFunction)(double, double), class T>
T in_double2(T a, T b) {
  return static_cast<T>(kFunction(static_cast<double>(a), static_cast<double>(b)));
}
// The same of every lane: InDouble<f>(x) and InDouble2<f>(a, b).
template <double (*kFunction)(double)>
struct InDouble {
  template <class T>
  HWY_INLINE Vec<T> operator()(Vec<T> x) const {
    return map_lanes([](T v) { return in_double<kFunction, T>(v); }, x);
  }
};
template <double (*kFunction)(double, double)>
struct InDouble2 {
  template <class T>
  HWY_INLINE Vec<T> operator()(Vec<T> a, Vec<T> b) const {
    return map_lanes([](T x, T y) { return in_double2<kFunction, T>(x, y); }, a, b);
  }
};

inline constexpr InDouble2<scalar::zeta> zeta;
inline constexpr InDouble2<scalar::polygamma> polygamma;

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
