// Highway with vectors of one lane. A thread computes one element, so the code for vectors
// (aten/scalar/vec-inl.h, math-inl.h) works for it unchanged.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#define HWY_NAMESPACE N_CUDA
#define HWY_BEFORE_NAMESPACE() static_assert(true, "")
#define HWY_AFTER_NAMESPACE() static_assert(true, "")
#define HWY_INLINE __forceinline__
#define HWY_ALIGN
#define HWY_ATTR
#define HWY_LIKELY(c) (c)
#define HWY_LANES(T) 1
// Loads and stores of some lanes are not used. Their numbers select small code.
#define HWY_AVX2 1
#define HWY_TARGET 2

namespace hwy::HWY_NAMESPACE {

template <class T>
struct ScalableTag {
  using Lane = T;
};
template <class D>
using Vec = typename D::Lane;
template <class D>
using Mask = bool;
template <class T, class D>
using Rebind = ScalableTag<T>;
template <class D>
using RebindToUnsigned =
    ScalableTag<std::conditional_t<sizeof(typename D::Lane) == 4, uint32_t, uint64_t>>;

template <class D>
using VFromD = Vec<D>;
template <class D>
using TFromD = typename D::Lane;
template <class D>
constexpr size_t MaxLanes(D) {
  return 1;
}

template <class D, class T>
HWY_INLINE Vec<D> Set(D, T v) {
  return static_cast<Vec<D>>(v);
}
template <class D>
HWY_INLINE Vec<D> Zero(D) {
  return Vec<D>(0);
}
template <class D, class T>
HWY_INLINE Vec<D> Load(D, const T* p) {
  return *p;
}
template <class D, class T>
HWY_INLINE Vec<D> LoadU(D, const T* p) {
  return *p;
}
template <class V, class D, class T>
HWY_INLINE void Store(V v, D, T* p) {
  *p = v;
}
template <class V, class D, class T>
HWY_INLINE void StoreU(V v, D, T* p) {
  *p = v;
}
template <class V>
HWY_INLINE V GetLane(V v) {
  return v;
}
template <class D, class M>
HWY_INLINE size_t StoreMaskBits(D, M m, uint8_t* bits) {
  *bits = m;
  return 1;
}

template <class V>
HWY_INLINE V Add(V a, V b) {
  return a + b;
}
template <class V>
HWY_INLINE V Sub(V a, V b) {
  return a - b;
}
template <class V>
HWY_INLINE V Mul(V a, V b) {
  return a * b;
}
template <class V>
HWY_INLINE V Div(V a, V b) {
  return a / b;
}
template <class V>
HWY_INLINE V Neg(V a) {
  return -a;
}
template <class V>
HWY_INLINE V MulAdd(V a, V b, V c) {
  return ::fma(a, b, c);
}
template <class V>
HWY_INLINE V MulSub(V a, V b, V c) {
  return ::fma(a, b, -c);
}
template <class V>
HWY_INLINE V NegMulAdd(V a, V b, V c) {
  return ::fma(-a, b, c);
}
template <class V>
HWY_INLINE V Min(V a, V b) {  // the second where one is NaN, as on x86
  return a < b ? a : b;
}
template <class V>
HWY_INLINE V Max(V a, V b) {
  return a > b ? a : b;
}
template <int kBits, class V>
HWY_INLINE V ShiftLeft(V v) {
  return v << kBits;
}

template <int kBits, class V>
HWY_INLINE V ShiftRight(V v) {
  return v >> kBits;
}

template <class V>
HWY_INLINE bool Lt(V a, V b) {
  return a < b;
}
template <class V>
HWY_INLINE bool Le(V a, V b) {
  return a <= b;
}
template <class V>
HWY_INLINE bool Gt(V a, V b) {
  return a > b;
}
template <class V>
HWY_INLINE bool Ge(V a, V b) {
  return a >= b;
}
template <class V>
HWY_INLINE bool Eq(V a, V b) {
  return a == b;
}
// For masks, and for the bits of integers.
HWY_INLINE bool Not(bool a) { return !a; }
HWY_INLINE bool And(bool a, bool b) { return a && b; }
HWY_INLINE bool Or(bool a, bool b) { return a || b; }
HWY_INLINE bool Xor(bool a, bool b) { return a != b; }
HWY_INLINE bool AndNot(bool a, bool b) { return !a && b; }
HWY_INLINE int32_t And(int32_t a, int32_t b) { return a & b; }
HWY_INLINE uint32_t And(uint32_t a, uint32_t b) { return a & b; }
HWY_INLINE uint64_t And(uint64_t a, uint64_t b) { return a & b; }
HWY_INLINE uint32_t Or(uint32_t a, uint32_t b) { return a | b; }
HWY_INLINE uint64_t Or(uint64_t a, uint64_t b) { return a | b; }
HWY_INLINE uint64_t Xor(uint64_t a, uint64_t b) { return a ^ b; }
template <class D>
HWY_INLINE bool RebindMask(D, bool m) {
  return m;
}
template <class D>
HWY_INLINE bool AllTrue(D, bool m) {
  return m;
}
template <class D>
HWY_INLINE Vec<D> VecFromMask(D, bool m) {
  return m ? static_cast<Vec<D>>(1) : static_cast<Vec<D>>(0);
}
template <class D, class V>
HWY_INLINE Vec<D> DemoteTo(D, V v) {
  return static_cast<Vec<D>>(v);
}
// Halves of one lane are not used, only named.
template <class D>
using Half = D;
template <class D, class V>
HWY_INLINE V LowerHalf(D, V v) {
  return v;
}
template <class D, class V>
HWY_INLINE V UpperHalf(D, V v) {
  return v;
}
template <class D, class V>
HWY_INLINE V Combine(D, V /*high*/, V low) {
  return low;
}
template <class D, class V>
HWY_INLINE Vec<D> PromoteTo(D, V v) {
  return static_cast<Vec<D>>(v);
}
template <class V>
HWY_INLINE V IfThenElse(bool c, V a, V b) {
  return c ? a : b;
}
template <class D, class V>
HWY_INLINE Vec<D> BitCast(D, V v) {
  return __builtin_bit_cast(Vec<D>, v);
}

template <class V>
HWY_INLINE V Abs(V x) {
  return ::fabs(x);
}
template <class V>
HWY_INLINE V CopySign(V x, V s) {
  return ::copysign(x, s);
}
template <class V>
HWY_INLINE V Sqrt(V x) {
  return ::sqrt(x);
}
template <class V>
HWY_INLINE V Floor(V x) {
  return ::floor(x);
}
template <class V>
HWY_INLINE V Ceil(V x) {
  return ::ceil(x);
}
template <class V>
HWY_INLINE V Round(V x) {
  return ::rint(x);
}
template <class V>
HWY_INLINE V Trunc(V x) {
  return ::trunc(x);
}

}  // namespace hwy::HWY_NAMESPACE
