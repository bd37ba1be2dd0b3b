// Functions of complex numbers, from the C++ library where it has them. Those with a real value
// have an imaginary part of zero.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <type_traits>

#include "aten/scalar/num.h"

namespace treadle::simd {

template <class R>
inline std::complex<R> to_std(Cplx<R> z) {
  return {z.re, z.im};
}
template <class R>
inline Cplx<R> from_std(std::complex<R> z) {
  return {z.real(), z.imag()};
}

template <class R>
constexpr Cplx<R> real(Cplx<R> z) {
  return {z.re, 0};
}
template <class R>
constexpr Cplx<R> imag(Cplx<R> z) {
  return {z.im, 0};
}
template <class R>
constexpr Cplx<R> conj(Cplx<R> z) {
  return {z.re, -z.im};
}
template <class R>
inline Cplx<R> abs(Cplx<R> z) {
  return {std::hypot(z.re, z.im), 0};
}
template <class R>
inline Cplx<R> arg(Cplx<R> z) {
  return {std::atan2(z.im, z.re), 0};
}
template <class R>
constexpr Cplx<R> square(Cplx<R> z) {
  return z * z;
}
template <class R>
constexpr Cplx<R> reciprocal(Cplx<R> z) {
  return Cplx<R>{1, 0} / z;
}
template <class R>
inline Cplx<R> sgn(Cplx<R> z) {
  const R size = std::hypot(z.re, z.im);
  return size == 0 ? Cplx<R>{0, 0} : Cplx<R>{z.re / size, z.im / size};
}
template <class R>
inline Bool isnan(Cplx<R> z) {
  return {std::isnan(z.re) || std::isnan(z.im)};
}
template <class R>
inline Bool isinf(Cplx<R> z) {
  return {std::isinf(z.re) || std::isinf(z.im)};
}
template <class R>
inline Bool isfinite(Cplx<R> z) {
  return {std::isfinite(z.re) && std::isfinite(z.im)};
}

template <class R>
inline Cplx<R> sqrt(Cplx<R> z) {
  return from_std(std::sqrt(to_std(z)));
}
template <class R>
inline Cplx<R> rsqrt(Cplx<R> z) {
  return reciprocal(sqrt(z));
}
template <class R>
inline Cplx<R> exp(Cplx<R> z) {
  return from_std(std::exp(to_std(z)));
}
// A type with more digits, for products whose rounding an exponential would magnify.
template <class R>
using Wider = std::conditional_t<std::is_same_v<R, float>, double, long double>;
template <class R>
inline Cplx<R> exp2(Cplx<R> z) {
  using W = Wider<R>;
  if (!std::isfinite(z.re) || !std::isfinite(z.im))
    return exp(Cplx<R>{z.re * std::numbers::ln2_v<R>, z.im * std::numbers::ln2_v<R>});
  if (z.im == 0) return {std::exp2(z.re), z.im};  // exact where z is an integer
  const R angle =
      static_cast<R>(std::remainder(W(z.im) * std::numbers::ln2_v<W>, 2 * std::numbers::pi_v<W>));
  const R root = std::exp2(z.re / 2);  // of the modulus, which may overflow before its parts do
  return {root * std::cos(angle) * root, root * std::sin(angle) * root};
}
template <class R>
inline Cplx<R> expm1(Cplx<R> z) {
  // No direction at an infinite distance: of e^z only the size is known, as in C99's exp.
  if (std::isinf(z.re) && !std::isfinite(z.im)) {
    if (z.re < 0) return {-1, std::copysign(R(0), z.im)};
    return {z.re, std::numeric_limits<R>::quiet_NaN()};
  }
  const R half = std::sin(z.im / 2), scale = std::exp(z.re);
  return {std::expm1(z.re) * std::cos(z.im) - 2 * half * half,
          z.im == 0 ? z.im : scale * std::sin(z.im)};
}
template <class R>
inline Cplx<R> log(Cplx<R> z) {
  return from_std(std::log(to_std(z)));
}
template <class R>
inline Cplx<R> log2(Cplx<R> z) {
  const Cplx<R> l = log(z);
  return {l.re / std::numbers::ln2_v<R>, l.im / std::numbers::ln2_v<R>};
}
template <class R>
inline Cplx<R> log10(Cplx<R> z) {
  return from_std(std::log10(to_std(z)));
}
template <class R>
inline Cplx<R> log1p(Cplx<R> z) {
  const R x = z.re + 1;
  if (std::abs(z.re) > R(0.5) || std::abs(z.im) > R(0.5)) return log(Cplx<R>{x, z.im});
  return {std::log1p(z.re * (2 + z.re) + z.im * z.im) / 2, std::atan2(z.im, x)};
}
template <class R>
inline Cplx<R> sin(Cplx<R> z) {
  return from_std(std::sin(to_std(z)));
}
template <class R>
inline Cplx<R> sinc(Cplx<R> z) {
  if (z.re == 0 && z.im == 0) return {1, 0};
  // Half turns are taken off before the product with pi is rounded.
  const R pi = std::numbers::pi_v<R>, turns = std::nearbyint(z.re);
  const Cplx<R> sine = sin(Cplx<R>{pi * (z.re - turns), pi * z.im});
  return (std::fmod(turns, 2) == 0 ? sine : -sine) / Cplx<R>{pi * z.re, pi * z.im};
}
template <class R>
inline Cplx<R> cos(Cplx<R> z) {
  return from_std(std::cos(to_std(z)));
}
template <class R>
inline Cplx<R> tan(Cplx<R> z) {
  return from_std(std::tan(to_std(z)));
}
template <class R>
inline Cplx<R> asin(Cplx<R> z) {
  return from_std(std::asin(to_std(z)));
}
template <class R>
inline Cplx<R> acos(Cplx<R> z) {
  return from_std(std::acos(to_std(z)));
}
template <class R>
inline Cplx<R> atan(Cplx<R> z) {
  return from_std(std::atan(to_std(z)));
}
template <class R>
inline Cplx<R> sinh(Cplx<R> z) {
  return from_std(std::sinh(to_std(z)));
}
template <class R>
inline Cplx<R> cosh(Cplx<R> z) {
  return from_std(std::cosh(to_std(z)));
}
template <class R>
inline Cplx<R> tanh(Cplx<R> z) {
  return from_std(std::tanh(to_std(z)));
}
template <class R>
inline Cplx<R> asinh(Cplx<R> z) {
  return from_std(std::asinh(to_std(z)));
}
template <class R>
inline Cplx<R> acosh(Cplx<R> z) {
  return from_std(std::acosh(to_std(z)));
}
template <class R>
inline Cplx<R> atanh(Cplx<R> z) {
  return from_std(std::atanh(to_std(z)));
}
template <class R>
inline Cplx<R> sigmoid(Cplx<R> z) {
  if (z.re < -1) {
    const Cplx<R> e = exp(z);
    return e / (Cplx<R>{1, 0} + e);
  }
  const Cplx<R> t = tanh(Cplx<R>{z.re / 2, z.im / 2});  // exact to its last digits near the poles
  return {(1 + t.re) / 2, t.im / 2};
}
template <class R>
inline Cplx<R> silu(Cplx<R> z) {
  return z * sigmoid(z);
}
template <class R>
inline Cplx<R> pow(Cplx<R> a, Cplx<R> b) {
  if (b.im == 0) {
    if (b.re == 2) return a * a;
    if (b.re == 3) return a * a * a;
    if (b.re == 1) return a;
    if (b.re == 0) return {1, 0};
    if (b.re == R(0.5)) return sqrt(a);
    if (b.re == -1) return reciprocal(a);
  }
  using W = Wider<R>;
  const std::complex<W> p = std::pow(std::complex<W>(a.re, a.im), std::complex<W>(b.re, b.im));
  return {static_cast<R>(p.real()), static_cast<R>(p.imag())};
}

}  // namespace treadle::simd
