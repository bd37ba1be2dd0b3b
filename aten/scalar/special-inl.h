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

// A function of numbers in double, of every lane: InDouble<f>(x) and InDouble2<f>(a, b).
template <double (*kFunction)(double)>
struct InDouble {
  template <class T>
  HWY_INLINE Vec<T> operator()(Vec<T> x) const {
    return map_lanes([](T v) { return static_cast<T>(kFunction(static_cast<double>(v))); }, x);
  }
};
template <double (*kFunction)(double, double)>
struct InDouble2 {
  template <class T>
  HWY_INLINE Vec<T> operator()(Vec<T> a, Vec<T> b) const {
    return map_lanes(
        [](T x, T y) {
          return static_cast<T>(kFunction(static_cast<double>(x), static_cast<double>(y)));
        },
        a, b);
  }
};

inline constexpr InDouble<scalar::bessel_j0> bessel_j0;
inline constexpr InDouble<scalar::bessel_j1> bessel_j1;
inline constexpr InDouble<scalar::bessel_y0> bessel_y0;
inline constexpr InDouble<scalar::bessel_y1> bessel_y1;
inline constexpr InDouble<scalar::k0> bessel_k0;
inline constexpr InDouble<scalar::k1> bessel_k1;
inline constexpr InDouble<scalar::scaled_k0> scaled_bessel_k0;
inline constexpr InDouble<scalar::scaled_k1> scaled_bessel_k1;
inline constexpr InDouble<scalar::spherical_j0> spherical_bessel_j0;
inline constexpr InDouble<scalar::airy_ai> airy_ai;
inline constexpr InDouble<scalar::erfcx> erfcx;
inline constexpr InDouble<scalar::log_ndtr> log_ndtr;

inline constexpr InDouble2<scalar::zeta> zeta;
inline constexpr InDouble2<scalar::polygamma> polygamma;
inline constexpr InDouble2<scalar::igamma> igamma;
inline constexpr InDouble2<scalar::igammac> igammac;
inline constexpr InDouble2<scalar::chebyshev<scalar::Chebyshev::T>> chebyshev_t;
inline constexpr InDouble2<scalar::chebyshev<scalar::Chebyshev::U>> chebyshev_u;
inline constexpr InDouble2<scalar::chebyshev<scalar::Chebyshev::V>> chebyshev_v;
inline constexpr InDouble2<scalar::chebyshev<scalar::Chebyshev::W>> chebyshev_w;
inline constexpr InDouble2<scalar::shifted_chebyshev<scalar::Chebyshev::T>> shifted_chebyshev_t;
inline constexpr InDouble2<scalar::shifted_chebyshev<scalar::Chebyshev::U>> shifted_chebyshev_u;
inline constexpr InDouble2<scalar::shifted_chebyshev<scalar::Chebyshev::V>> shifted_chebyshev_v;
inline constexpr InDouble2<scalar::shifted_chebyshev<scalar::Chebyshev::W>> shifted_chebyshev_w;
inline constexpr InDouble2<scalar::hermite_h> hermite_h;
inline constexpr InDouble2<scalar::hermite_he> hermite_he;
inline constexpr InDouble2<scalar::laguerre_l> laguerre_l;
inline constexpr InDouble2<scalar::legendre_p> legendre_p;

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
