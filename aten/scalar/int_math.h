// Functions of integers and bool, defined for every value. Division by zero is an error. The most
// negative number divided by -1 wraps. A shift by the width or more gives the result of shifting
// bit by bit.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/scalar/num.h"
#include "core/base/error.h"

namespace treadle::simd {

template <class T>
constexpr Num<T> real(Num<T> a) {
  return a;
}
template <class T>
constexpr Num<T> conj(Num<T> a) {
  return a;
}
template <class T>
constexpr Num<T> imag(Num<T>) {
  return {T(0)};
}
template <class T>
constexpr Num<T> floor(Num<T> a) {
  return a;
}
template <class T>
constexpr Num<T> ceil(Num<T> a) {
  return a;
}
template <class T>
constexpr Num<T> round(Num<T> a) {
  return a;
}
template <class T>
constexpr Num<T> trunc(Num<T> a) {
  return a;
}
template <class T>
constexpr Bool isnan(Num<T>) {
  return {false};
}
template <class T>
constexpr Bool isinf(Num<T>) {
  return {false};
}
template <class T>
constexpr Bool isfinite(Num<T>) {
  return {true};
}

// Without a sign nothing is; compilers warn where a bool is asked whether it is below false.
template <class T>
constexpr bool is_negative(Num<T> a) {
  if constexpr (std::is_signed_v<T>)
    return a.v < T(0);
  else
    return false;
}
template <class T>
constexpr Bool signbit(Num<T> a) {
  return {is_negative(a)};
}
// Without a branch, because signs cannot be predicted: all bits of a negative number change, and
// then 1 is added.
template <class T>
constexpr Num<T> abs(Num<T> a) {
  const Num<T> mask{static_cast<T>(-static_cast<T>(is_negative(a)))};
  return Num<T>{static_cast<T>(a.v ^ mask.v)} - mask;
}
template <class T>
constexpr Num<T> square(Num<T> a) {
  return a * a;
}
template <class T>
constexpr Num<T> sign(Num<T> a) {
  return {static_cast<T>((a.v > T(0)) - is_negative(a))};
}
template <class T>
constexpr Num<T> sgn(Num<T> a) {
  return sign(a);
}
template <class T>
constexpr Num<T> relu(Num<T> a) {
  return is_negative(a) ? Num<T>{T(0)} : a;
}
template <class T>
constexpr Num<T> maximum(Num<T> a, Num<T> b) {
  return a.v < b.v ? b : a;
}
template <class T>
constexpr Num<T> minimum(Num<T> a, Num<T> b) {
  return b.v < a.v ? b : a;
}
template <class T>
constexpr Num<T> fmax(Num<T> a, Num<T> b) {
  return maximum(a, b);
}
template <class T>
constexpr Num<T> fmin(Num<T> a, Num<T> b) {
  return minimum(a, b);
}
template <class T>
constexpr Num<T> clamp(Num<T> x, Num<T> low, Num<T> high) {
  return minimum(maximum(x, low), high);
}
template <class T>
constexpr Num<T> nan_to_num(Num<T> x, Num<T>, Num<T>, Num<T>) {
  return x;
}

// Throws out of the block's loop; what was written before it is unspecified.
[[noreturn, gnu::cold, gnu::noinline]] inline void division_by_zero(const char* function) {
  treadle::fail<ErrorKind::Runtime>(OpName(function), "expected a non-zero divisor, got 0");
}
template <class T>
constexpr bool is_wrapping_division(T a, T b) {
  return std::is_signed_v<T> && b == T(-1) && a == std::numeric_limits<T>::lowest();
}

template <class T>
inline Num<T> trunc_divide(Num<T> a, Num<T> b) {
  if (b.v == T(0)) division_by_zero("trunc_divide");
  if (is_wrapping_division(a.v, b.v)) return a;
  return {static_cast<T>(a.v / b.v)};
}
template <class T>
inline Num<T> floor_divide(Num<T> a, Num<T> b) {
  if (b.v == T(0)) division_by_zero("floor_divide");
  if (is_wrapping_division(a.v, b.v)) return a;
  const T quotient = static_cast<T>(a.v / b.v), rest = static_cast<T>(a.v % b.v);
  return {static_cast<T>(quotient - (rest != T(0) && (rest < T(0)) != (b.v < T(0))))};
}
template <class T>
inline Num<T> fmod(Num<T> a, Num<T> b) {
  if (b.v == T(0)) division_by_zero("fmod");
  if (is_wrapping_division(a.v, b.v)) return {T(0)};
  return {static_cast<T>(a.v % b.v)};
}
template <class T>
inline Num<T> remainder(Num<T> a, Num<T> b) {
  if (b.v == T(0)) division_by_zero("remainder");
  if (is_wrapping_division(a.v, b.v)) return {T(0)};
  const T rest = static_cast<T>(a.v % b.v);
  return {static_cast<T>(rest != T(0) && (rest < T(0)) != (b.v < T(0)) ? rest + b.v : rest)};
}

// By squaring, wrapping. A negative power of an integer is 0, but for 1 and -1.
template <class T>
inline Num<T> pow(Num<T> base, Num<T> exponent) {
  if constexpr (std::is_same_v<T, bool>) {
    return {base.v || !exponent.v};
  } else {
    if (exponent.v < T(0)) {
      if (base.v == T(1)) return base;
      if (base.v == T(-1)) return {exponent.v % 2 ? T(-1) : T(1)};
      return {T(0)};
    }
    Num<T> result{T(1)};
    for (auto e = static_cast<std::make_unsigned_t<T>>(exponent.v); e != 0;
         e = static_cast<decltype(e)>(e >> 1)) {
      if (e & 1) result = result * base;
      base = base * base;
    }
    return result;
  }
}

// Not negative, but for what has no opposite: gcd(-128, 0) of int8 is -128.
template <class T>
constexpr Num<T> gcd(Num<T> a, Num<T> b) {
  using U = std::make_unsigned_t<T>;
  U x = static_cast<U>(abs(a).v), y = static_cast<U>(abs(b).v);
  while (y != 0) {
    const U rest = static_cast<U>(x % y);
    x = y;
    y = rest;
  }
  return {static_cast<T>(x)};
}
template <class T>
constexpr Num<T> lcm(Num<T> a, Num<T> b) {
  const Num<T> divisor = gcd(a, b);
  if (divisor.v == T(0)) return divisor;
  using U = std::make_unsigned_t<T>;
  const U part = static_cast<U>(static_cast<U>(abs(a).v) / static_cast<U>(divisor.v));
  return abs(Num<T>{static_cast<T>(part)} * b);
}

template <class T>
constexpr Num<T> bitwise_and(Num<T> a, Num<T> b) {
  return {static_cast<T>(a.v & b.v)};
}
template <class T>
constexpr Num<T> bitwise_or(Num<T> a, Num<T> b) {
  return {static_cast<T>(a.v | b.v)};
}
template <class T>
constexpr Num<T> bitwise_xor(Num<T> a, Num<T> b) {
  return {static_cast<T>(a.v ^ b.v)};
}
template <class T>
constexpr Num<T> bitwise_not(Num<T> a) {
  if constexpr (std::is_same_v<T, bool>)
    return {!a.v};
  else
    return {static_cast<T>(~a.v)};
}
template <class T>
constexpr Num<T> shift_left(Num<T> a, Num<T> b) {
  constexpr int kBits = 8 * sizeof(T);
  if (b.v < T(0) || b.v >= static_cast<T>(kBits)) return {T(0)};
  return {static_cast<T>(static_cast<Wrapping<T>>(a.v) << b.v)};
}
template <class T>
constexpr Num<T> shift_right(Num<T> a, Num<T> b) {
  constexpr T kLast = 8 * sizeof(T) - 1;
  if (b.v < T(0) || b.v > kLast) return {static_cast<T>(std::is_signed_v<T> ? a.v >> kLast : 0)};
  return {static_cast<T>(a.v >> b.v)};
}

}  // namespace treadle::simd
