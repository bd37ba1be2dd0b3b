// The value types of generated kernels, which are those of the CPU's kernels (a vector of one lane,
// an integer, a complex number), and the conversions between elements in memory and values.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cpu/convert.h"

// Special functions are long, so they are called instead of being repeated for each element of a
// thread.
#include "aten/scalar/vec-inl.h"
#pragma push_macro("HWY_INLINE")
#undef HWY_INLINE
#define HWY_INLINE __attribute__((noinline))
#include "aten/scalar/special-inl.h"
#pragma pop_macro("HWY_INLINE")

#include "aten/scalar/bessel-inl.h"
#include "aten/scalar/error-inl.h"
#include "aten/scalar/gamma-inl.h"
#include "aten/scalar/math-inl.h"
#include "aten/scalar/polynomials-inl.h"

namespace treadle::simd::N_CUDA {

template <class T>
using Value = typename ValueOf<T>::type;

// An element of the compute type as a value.
inline Vec<float> value_of(float v) { return {v}; }
inline Vec<double> value_of(double v) { return {v}; }
template <class T>
inline Num<T> value_of(T v) {
  return {v};
}
template <class R>
inline Cplx<R> value_of(std::complex<R> v) {
  return {v.real(), v.imag()};
}

// An element of memory as a value of the compute type T.
template <class T, class Element>
inline Value<T> value_at(const Element& element) {
  return value_of(convert_element<T>(element_value(element)));
}

// And a value as an element. A truth value is a bool.
template <class T>
inline T element_of(Vec<T> v) {
  return v.raw;
}
template <class T>
inline bool element_of(Mask<T> m) {
  return m.raw;
}
template <class T>
inline T element_of(Num<T> v) {
  return v.v;
}
template <class R>
inline std::complex<R> element_of(Cplx<R> v) {
  return {v.re, v.im};
}

// Converts the result of any expression to a value of the compute type T.
template <class T, class V>
inline Value<T> as_value_of(V v) {
  return value_of(convert_element<T>(element_of(v)));
}

}  // namespace treadle::simd::N_CUDA

namespace treadle::cuda {

namespace simd = treadle::simd::N_CUDA;
using treadle::simd::convert_element;

// Division of numbers below 2^31 by a divisor that is known before the kernel runs: a
// multiplication and a shift (Granlund and Montgomery, "Division by invariant integers using
// multiplication", 1994). Larger numbers are divided.
template <class Index>
struct Divisor;
template <>
struct Divisor<unsigned> {
  unsigned value, factor, shift;
  unsigned quotient(unsigned n) const { return (__umulhi(n, factor) + n) >> shift; }
};
template <>
struct Divisor<unsigned long long> {
  unsigned long long value;
  unsigned long long quotient(unsigned long long n) const { return n / value; }
};

// Elements that are read or written at once: 16 bytes, or a multiple of them.
template <class T, int n>
struct alignas(sizeof(T) * n < 16 ? sizeof(T) * n : 16) Pack {
  T at[n];
};

}  // namespace treadle::cuda
