// Special functions of vectors: lane by lane, in double (special_*.h).
#if defined(TREADLE_ATEN_CPU_SIMD_SPECIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_SPECIAL_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_SPECIAL_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_SPECIAL_INL_H_
#endif

#include "aten/cpu/simd/special_bessel.h"
#include "aten/cpu/simd/special_gamma.h"
#include "aten/cpu/simd/special_normal.h"
#include "aten/cpu/simd/special_polynomials.h"
#include "aten/cpu/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

template <class T>
HWY_INLINE Vec<T> in_double(double (*f)(double), Vec<T> x) {
  return map_lanes([f](T v) { return static_cast<T>(f(static_cast<double>(v))); }, x);
}
template <class T>
HWY_INLINE Vec<T> in_double(double (*f)(double, double), Vec<T> a, Vec<T> b) {
  return map_lanes(
      [f](T x, T y) { return static_cast<T>(f(static_cast<double>(x), static_cast<double>(y))); },
      a, b);
}

template <class T>
HWY_INLINE Vec<T> i0(Vec<T> x) {
  return in_double(&scalar::i0, x);
}
template <class T>
HWY_INLINE Vec<T> i0e(Vec<T> x) {
  return in_double(&scalar::i0e, x);
}
template <class T>
HWY_INLINE Vec<T> i1(Vec<T> x) {
  return in_double(&scalar::i1, x);
}
template <class T>
HWY_INLINE Vec<T> i1e(Vec<T> x) {
  return in_double(&scalar::i1e, x);
}
template <class T>
HWY_INLINE Vec<T> bessel_j0(Vec<T> x) {
  return in_double(&scalar::bessel_j0, x);
}
template <class T>
HWY_INLINE Vec<T> bessel_j1(Vec<T> x) {
  return in_double(&scalar::bessel_j1, x);
}
template <class T>
HWY_INLINE Vec<T> bessel_y0(Vec<T> x) {
  return in_double(&scalar::bessel_y0, x);
}
template <class T>
HWY_INLINE Vec<T> bessel_y1(Vec<T> x) {
  return in_double(&scalar::bessel_y1, x);
}
template <class T>
HWY_INLINE Vec<T> bessel_k0(Vec<T> x) {
  return in_double(&scalar::k0, x);
}
template <class T>
HWY_INLINE Vec<T> bessel_k1(Vec<T> x) {
  return in_double(&scalar::k1, x);
}
template <class T>
HWY_INLINE Vec<T> scaled_bessel_k0(Vec<T> x) {
  return in_double(&scalar::scaled_k0, x);
}
template <class T>
HWY_INLINE Vec<T> scaled_bessel_k1(Vec<T> x) {
  return in_double(&scalar::scaled_k1, x);
}
template <class T>
HWY_INLINE Vec<T> spherical_bessel_j0(Vec<T> x) {
  return in_double(&scalar::spherical_j0, x);
}
template <class T>
HWY_INLINE Vec<T> airy_ai(Vec<T> x) {
  return in_double(&scalar::airy_ai, x);
}
template <class T>
HWY_INLINE Vec<T> erfcx(Vec<T> x) {
  return in_double(&scalar::erfcx, x);
}
template <class T>
HWY_INLINE Vec<T> ndtr(Vec<T> x) {
  return in_double(&scalar::ndtr, x);
}
template <class T>
HWY_INLINE Vec<T> log_ndtr(Vec<T> x) {
  return in_double(&scalar::log_ndtr, x);
}
template <class T>
HWY_INLINE Vec<T> ndtri(Vec<T> x) {
  return in_double(&scalar::ndtri, x);
}
template <class T>
HWY_INLINE Vec<T> zeta(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::zeta, a, b);
}
template <class T>
HWY_INLINE Vec<T> polygamma(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::polygamma, a, b);
}
template <class T>
HWY_INLINE Vec<T> igamma(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::igamma, a, b);
}
template <class T>
HWY_INLINE Vec<T> igammac(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::igammac, a, b);
}
template <class T>
HWY_INLINE Vec<T> chebyshev_t(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::chebyshev<scalar::Chebyshev::T>, a, b);
}
template <class T>
HWY_INLINE Vec<T> chebyshev_u(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::chebyshev<scalar::Chebyshev::U>, a, b);
}
template <class T>
HWY_INLINE Vec<T> chebyshev_v(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::chebyshev<scalar::Chebyshev::V>, a, b);
}
template <class T>
HWY_INLINE Vec<T> chebyshev_w(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::chebyshev<scalar::Chebyshev::W>, a, b);
}
template <class T>
HWY_INLINE Vec<T> shifted_chebyshev_t(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::shifted_chebyshev<scalar::Chebyshev::T>, a, b);
}
template <class T>
HWY_INLINE Vec<T> shifted_chebyshev_u(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::shifted_chebyshev<scalar::Chebyshev::U>, a, b);
}
template <class T>
HWY_INLINE Vec<T> shifted_chebyshev_v(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::shifted_chebyshev<scalar::Chebyshev::V>, a, b);
}
template <class T>
HWY_INLINE Vec<T> shifted_chebyshev_w(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::shifted_chebyshev<scalar::Chebyshev::W>, a, b);
}
template <class T>
HWY_INLINE Vec<T> hermite_h(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::hermite_h, a, b);
}
template <class T>
HWY_INLINE Vec<T> hermite_he(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::hermite_he, a, b);
}
template <class T>
HWY_INLINE Vec<T> laguerre_l(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::laguerre_l, a, b);
}
template <class T>
HWY_INLINE Vec<T> legendre_p(Vec<T> a, Vec<T> b) {
  return in_double(&scalar::legendre_p, a, b);
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
