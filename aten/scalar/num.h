// Num and Cplx: one integer, bool or complex number as an operand of pointwise expressions. They
// have the operators of SIMD vectors (vec-inl.h), so one expression serves both. Their arithmetic
// is defined for every value: integers wrap, and for bool `+` is "or" and `*` is "and".
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/scalar.h"

namespace treadle::simd {

template <class T>
struct Num {
  using Lane = T;
  T v;
};
// A bool as memory holds it, by any byte; see element_value().
class Truth {
 public:
  Truth() = default;
  constexpr Truth(bool v) : byte_(v) {}
  constexpr operator bool() const { return byte_ != 0; }

 private:
  uint8_t byte_;
};
template <>
struct Num<bool> {
  using Lane = bool;
  Truth v;
};
using Bool = Num<bool>;

template <class R>
struct Cplx {
  using Lane = std::complex<R>;
  R re, im;
};

// Where C++ would promote (and overflow would be undefined), arithmetic goes through an unsigned
// type.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <class T>
constexpr Num<T> operator+(Num<T> a, Num<T> b) {
  if constexpr (std::is_same_v<T, bool>)
    return {static_cast<bool>(a.v | b.v)};
  else
    return {static_cast<T>(static_cast<Wrapping<T>>(a.v) + static_cast<Wrapping<T>>(b.v))};
}
template <class T>
constexpr Num<T> operator-(Num<T> a, Num<T> b) {
  if constexpr (std::is_same_v<T, bool>)
    return {a.v != b.v};
  else
    return {static_cast<T>(static_cast<Wrapping<T>>(a.v) - static_cast<Wrapping<T>>(b.v))};
}
template <class T>
constexpr Num<T> operator*(Num<T> a, Num<T> b) {
  if constexpr (std::is_same_v<T, bool>)
    return {static_cast<bool>(a.v & b.v)};
  else
    return {static_cast<T>(static_cast<Wrapping<T>>(a.v) * static_cast<Wrapping<T>>(b.v))};
}
template <class T>
constexpr Num<T> operator-(Num<T> a) {
  if constexpr (std::is_same_v<T, bool>)
    return a;
  else
    return {static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a.v))};
}
template <class T>
constexpr Bool operator<(Num<T> a, Num<T> b) {
  return {a.v < b.v};
}
template <class T>
constexpr Bool operator<=(Num<T> a, Num<T> b) {
  return {a.v <= b.v};
}
template <class T>
constexpr Bool operator>(Num<T> a, Num<T> b) {
  return {a.v > b.v};
}
template <class T>
constexpr Bool operator>=(Num<T> a, Num<T> b) {
  return {a.v >= b.v};
}
template <class T>
constexpr Bool operator==(Num<T> a, Num<T> b) {
  return {a.v == b.v};
}
template <class T>
constexpr Bool operator!=(Num<T> a, Num<T> b) {
  return {a.v != b.v};
}

template <class R>
constexpr Cplx<R> operator+(Cplx<R> a, Cplx<R> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class R>
constexpr Cplx<R> operator-(Cplx<R> a, Cplx<R> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class R>
constexpr Cplx<R> operator-(Cplx<R> a) {
  return {-a.re, -a.im};
}
template <class R>
constexpr Cplx<R> operator*(Cplx<R> a, Cplx<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// Smith's algorithm: scaled by the larger part of the divisor, so that squares do not overflow.
template <class R>
constexpr Cplx<R> operator/(Cplx<R> a, Cplx<R> b) {
  const R abs_re = b.re < 0 ? -b.re : b.re, abs_im = b.im < 0 ? -b.im : b.im;
  if (abs_re >= abs_im) {
    if (abs_re == 0) return {a.re / abs_re, a.im / abs_im};
    const R ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
    return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
  }
  const R ratio = b.re / b.im, scale = 1 / (b.re * ratio + b.im);
  return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
template <class R>
constexpr Bool operator==(Cplx<R> a, Cplx<R> b) {
  return {a.re == b.re && a.im == b.im};
}
template <class R>
constexpr Bool operator!=(Cplx<R> a, Cplx<R> b) {
  return {!(a.re == b.re && a.im == b.im)};
}

// The type of an expression's value for elements of type T, outside vectors.
template <class T>
struct ElementOf {
  using type = Num<T>;
};
template <class R>
struct ElementOf<std::complex<R>> {
  using type = Cplx<R>;
};
template <class T>
using Element = typename ElementOf<T>::type;

template <class T>
constexpr bool is_num = false;
template <class T>
constexpr bool is_num<Num<T>> = true;
template <class T>
constexpr bool is_cplx = false;
template <class R>
constexpr bool is_cplx<Cplx<R>> = true;

// A number of the expression's text, and the ends of a type's range (infinities where there are
// any).
template <class V>
requires is_num<V>
constexpr V constant(double value) { return {static_cast<typename V::Lane>(value)}; }
template <class V>
requires is_cplx<V>
constexpr V constant(double value) { return {static_cast<decltype(V::re)>(value), 0}; }
template <class V>
requires is_num<V>
constexpr V lowest() { return {std::numeric_limits<typename V::Lane>::lowest()}; }
template <class V>
requires is_num<V>
constexpr V highest() { return {std::numeric_limits<typename V::Lane>::max()}; }
template <class V>
requires is_num<V> V from_scalar(const Scalar& s) { return {s.to<typename V::Lane>()}; }
template <class V>
requires is_cplx<V> V from_scalar(const Scalar& s) {
  const auto z = s.to<typename V::Lane>();
  return {z.real(), z.imag()};
}

// The element that a loop stores for an expression's value: a truth value is stored as 0 or 1.
template <class V>
constexpr V as_element(V v) {
  return v;
}
template <class V>
requires(!std::is_same_v<V, Bool>) constexpr V as_element(Bool b) { return constant<V>(b.v); }

// Choosing and truth values.
template <class T>
constexpr Bool cast_bool(Num<T> a) {
  return {a.v != 0};
}
template <class R>
constexpr Bool cast_bool(Cplx<R> a) {
  return {static_cast<bool>((a.re != 0) | (a.im != 0))};
}
template <class T>
concept Number = is_num<T> || is_cplx<T>;
template <Number C, Number V>
constexpr V where(C c, V a, V b) {
  return cast_bool(c).v ? a : b;
}
template <Number V>
constexpr Bool logical_not(V a) {
  return {!cast_bool(a).v};
}
template <Number V, Number W>
constexpr Bool logical_and(V a, W b) {
  return {static_cast<bool>(cast_bool(a).v & cast_bool(b).v)};
}
template <Number V, Number W>
constexpr Bool logical_or(V a, W b) {
  return {static_cast<bool>(cast_bool(a).v | cast_bool(b).v)};
}
template <Number V, Number W>
constexpr Bool logical_xor(V a, W b) {
  return {cast_bool(a).v != cast_bool(b).v};
}

}  // namespace treadle::simd
