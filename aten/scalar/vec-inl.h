// Vec and Mask: a Highway vector with operators, compiled once per target. Pointwise expressions
// are written over these types.
//
//   Vec<float> y = where(x > constant<Vec<float>>(0), x, exp(x) - constant<Vec<float>>(1));
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_VEC_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_VEC_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_VEC_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_VEC_INL_H_
#endif

#include "aten/scalar/num.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
template <class T>
using Tag = hn::ScalableTag<T>;

template <class T>
struct Mask {
  using Lane = T;
  hn::Mask<Tag<T>> raw;
};
template <class T>
struct Vec {
  using Lane = T;
  static constexpr int64_t kLanes = HWY_LANES(T);
  hn::Vec<Tag<T>> raw;
};
template <class T>
constexpr bool is_vec = false;
template <class T>
constexpr bool is_vec<Vec<T>> = true;
template <class T>
constexpr bool is_mask = false;
template <class T>
constexpr bool is_mask<Mask<T>> = true;

// The type that an expression computes with for elements of type T.
template <class T>
struct ValueOf {
  using type = Element<T>;
};
template <>
struct ValueOf<float> {
  using type = Vec<float>;
};
template <>
struct ValueOf<double> {
  using type = Vec<double>;
};

template <class T>
HWY_INLINE Vec<T> set(T value) {
  return {hn::Set(Tag<T>(), value)};
}
template <class V>
requires is_vec<V> HWY_INLINE V constant(double value) {
  return set(static_cast<typename V::Lane>(value));
}
template <class V>
requires is_vec<V> HWY_INLINE V lowest() {
  return set(-std::numeric_limits<typename V::Lane>::infinity());
}
template <class V>
requires is_vec<V> HWY_INLINE V highest() {
  return set(std::numeric_limits<typename V::Lane>::infinity());
}
template <class V>
requires is_vec<V> HWY_INLINE V from_scalar(const Scalar& s) {
  return set(s.to<typename V::Lane>());
}
// The same names for numbers, so that `constant<V>` is found with either.
using treadle::simd::constant;
using treadle::simd::from_scalar;
using treadle::simd::highest;
using treadle::simd::lowest;

template <class T>
HWY_INLINE Vec<T> operator+(Vec<T> a, Vec<T> b) {
  return {hn::Add(a.raw, b.raw)};
}
template <class T>
HWY_INLINE Vec<T> operator-(Vec<T> a, Vec<T> b) {
  return {hn::Sub(a.raw, b.raw)};
}
template <class T>
HWY_INLINE Vec<T> operator*(Vec<T> a, Vec<T> b) {
  return {hn::Mul(a.raw, b.raw)};
}
template <class T>
HWY_INLINE Vec<T> operator/(Vec<T> a, Vec<T> b) {
  return {hn::Div(a.raw, b.raw)};
}
template <class T>
HWY_INLINE Vec<T> operator-(Vec<T> a) {
  return {hn::Neg(a.raw)};
}

template <class T>
HWY_INLINE Mask<T> operator<(Vec<T> a, Vec<T> b) {
  return {hn::Lt(a.raw, b.raw)};
}
template <class T>
HWY_INLINE Mask<T> operator<=(Vec<T> a, Vec<T> b) {
  return {hn::Le(a.raw, b.raw)};
}
template <class T>
HWY_INLINE Mask<T> operator>(Vec<T> a, Vec<T> b) {
  return {hn::Gt(a.raw, b.raw)};
}
template <class T>
HWY_INLINE Mask<T> operator>=(Vec<T> a, Vec<T> b) {
  return {hn::Ge(a.raw, b.raw)};
}
template <class T>
HWY_INLINE Mask<T> operator==(Vec<T> a, Vec<T> b) {
  return {hn::Eq(a.raw, b.raw)};
}
// Not hn::Ne, which is false for NaN on some targets.
template <class T>
HWY_INLINE Mask<T> operator!=(Vec<T> a, Vec<T> b) {
  return {hn::Not(hn::Eq(a.raw, b.raw))};
}

template <class T>
HWY_INLINE Mask<T> cast_bool(Vec<T> a) {
  return a != set(T(0));
}
template <class T>
HWY_INLINE Mask<T> cast_bool(Mask<T> a) {
  return a;
}
template <class V>
concept VecOrMask = is_vec<V> || is_mask<V>;
template <VecOrMask V>
HWY_INLINE auto logical_not(V a) {
  return Mask<typename V::Lane>{hn::Not(cast_bool(a).raw)};
}
template <VecOrMask V, VecOrMask W>
HWY_INLINE auto logical_and(V a, W b) {
  return Mask<typename V::Lane>{hn::And(cast_bool(a).raw, cast_bool(b).raw)};
}
template <VecOrMask V, VecOrMask W>
HWY_INLINE auto logical_or(V a, W b) {
  return Mask<typename V::Lane>{hn::Or(cast_bool(a).raw, cast_bool(b).raw)};
}
template <VecOrMask V, VecOrMask W>
HWY_INLINE auto logical_xor(V a, W b) {
  return Mask<typename V::Lane>{hn::Xor(cast_bool(a).raw, cast_bool(b).raw)};
}
template <class T>
HWY_INLINE Vec<T> where(Mask<T> c, Vec<T> a, Vec<T> b) {
  return {hn::IfThenElse(c.raw, a.raw, b.raw)};
}
template <class T>
HWY_INLINE Vec<T> where(Vec<T> c, Vec<T> a, Vec<T> b) {
  return where(cast_bool(c), a, b);
}
template <class T>
HWY_INLINE Mask<T> where(Mask<T> c, Mask<T> a, Mask<T> b) {
  return {hn::Or(hn::And(c.raw, a.raw), hn::AndNot(c.raw, b.raw))};
}

// Of all lanes; a vector that no lane needs is left out.
template <class T>
HWY_INLINE bool all_lanes(Mask<T> m) {
  return hn::AllTrue(Tag<T>(), m.raw);
}
template <class T>
HWY_INLINE bool no_lanes(Mask<T> m) {
  return hn::AllTrue(Tag<T>(), hn::Not(m.raw));
}

// ---- memory -------------------------------------------------------------------------------------

template <class T>
HWY_INLINE Vec<T> load(const T* p) {
  return {hn::LoadU(Tag<T>(), p)};
}
template <class T>
HWY_INLINE void store(Vec<T> v, T* p) {
  hn::StoreU(v.raw, Tag<T>(), p);
}

// The first `n` < kLanes elements; the other lanes are zero.
template <class T>
HWY_INLINE Vec<T> load_first(const T* p, int64_t n) {
#if HWY_TARGET <= HWY_AVX2
  return {hn::MaskedLoad(hn::FirstN(Tag<T>(), static_cast<size_t>(n)), Tag<T>(), p)};
#else
  // MaskedLoad of this target reads the whole vector.
  HWY_ALIGN T lanes[Vec<T>::kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = p[i];
  return {hn::Load(Tag<T>(), lanes)};
#endif
}
// By halves: masked stores are slow on many machines that have them beside vectors without masks.
template <class D>
HWY_INLINE void store_by_halves(D d, hn::VFromD<D> v, hn::TFromD<D>* p, int64_t n) {
  if constexpr (hn::MaxLanes(d) == 1) {
    if (n > 0) hn::StoreU(v, d, p);
  } else {
    const hn::Half<D> half;
    constexpr int64_t kHalf = static_cast<int64_t>(hn::MaxLanes(half));
    const auto low = hn::LowerHalf(half, v);
    if (n < kHalf) return store_by_halves(half, low, p, n);
    hn::StoreU(low, half, p);
    store_by_halves(half, hn::UpperHalf(half, v), p + kHalf, n - kHalf);
  }
}
template <class T>
HWY_INLINE void store_first(Vec<T> v, T* p, int64_t n) {
#if HWY_TARGET <= HWY_AVX3
  hn::BlendedStore(v.raw, hn::FirstN(Tag<T>(), static_cast<size_t>(n)), Tag<T>(), p);
#else
  store_by_halves(Tag<T>(), v.raw, p, n);
#endif
}
template <class T>
HWY_INLINE T first_lane(Vec<T> v) {
  return hn::GetLane(v.raw);
}

// One bool per lane. Eight bits of the mask become eight bytes by one multiplication.
template <class T>
HWY_INLINE void store_first(Mask<T> m, bool* p, int64_t n) {
  if constexpr (sizeof(T) == 4) {
    if (HWY_LIKELY(n == Vec<T>::kLanes)) {
      const hn::Rebind<int32_t, Tag<T>> di;
      const hn::Rebind<uint8_t, Tag<T>> db;
      const auto ones = hn::And(hn::BitCast(di, hn::VecFromMask(Tag<T>(), m.raw)), hn::Set(di, 1));
      hn::StoreU(hn::DemoteTo(db, ones), db, reinterpret_cast<uint8_t*>(p));
      return;
    }
  }
  HWY_ALIGN uint8_t bits[8] = {};
  hn::StoreMaskBits(Tag<T>(), m.raw, bits);
  for (int64_t i = 0; i < n; i += 8) {
    const uint64_t picked = (bits[i / 8] * 0x0101010101010101u) & 0x8040201008040201u;
    const uint64_t bytes = ((picked + 0x7f7f7f7f7f7f7f7fu) >> 7) & 0x0101010101010101u;
    if (n - i >= 8) {
      std::memcpy(p + i, &bytes, 8);
    } else if (n - i == 4) {
      std::memcpy(p + i, &bytes, 4);
    } else {
      for (int64_t k = i; k < n; ++k) p[k] = (bytes >> (8 * (k - i))) & 1;
    }
  }
}
// The first `n` <= kLanes elements.
template <class T>
HWY_INLINE Vec<T> load_lanes(const T* p, int64_t n) {
  return n == Vec<T>::kLanes ? load(p) : load_first(p, n);
}
template <class T>
HWY_INLINE void store_lanes(Vec<T> v, T* p, int64_t n) {
  if (n == Vec<T>::kLanes)
    store(v, p);
  else
    store_first(v, p, n);
}

// Lane by lane, for functions without a vector form.
template <class T, class F>
HWY_INLINE Vec<T> map_lanes(F f, Vec<T> a) {
  HWY_ALIGN T x[Vec<T>::kLanes];
  hn::Store(a.raw, Tag<T>(), x);
  for (int64_t i = 0; i < Vec<T>::kLanes; ++i) x[i] = f(x[i]);
  return {hn::Load(Tag<T>(), x)};
}
template <class T, class F>
HWY_INLINE Vec<T> map_lanes(F f, Vec<T> a, Vec<T> b) {
  HWY_ALIGN T x[Vec<T>::kLanes];
  HWY_ALIGN T y[Vec<T>::kLanes];
  hn::Store(a.raw, Tag<T>(), x);
  hn::Store(b.raw, Tag<T>(), y);
  for (int64_t i = 0; i < Vec<T>::kLanes; ++i) x[i] = f(x[i], y[i]);
  return {hn::Load(Tag<T>(), x)};
}

// `y` where `done` is true, and f of the lanes elsewhere.
template <class T>
struct Lanes {
  HWY_ALIGN T lane[Vec<T>::kLanes];
  HWY_INLINE explicit Lanes(Vec<T> v) { hn::Store(v.raw, Tag<T>(), lane); }
};
template <class T, class F, class... Vs>
HWY_INLINE Vec<T> fill_lanes(Mask<T> done, Vec<T> y, F f, Vs... v) {
  if (HWY_LIKELY(all_lanes(done))) return y;
  const auto fill = [&](auto... from) HWY_ATTR {
    Lanes<T> to(y);
    const Lanes<T> is_done(Vec<T>{hn::VecFromMask(Tag<T>(), done.raw)});
    for (int64_t i = 0; i < Vec<T>::kLanes; ++i)
      if (is_done.lane[i] == 0)
        to.lane[i] = f(from.lane[i]...);  // a lane that is done has all bits
    return Vec<T>{hn::Load(Tag<T>(), to.lane)};
  };
  return fill(Lanes<T>(v)...);
}

// f of the lanes as doubles, rounded once: twice the instructions, and no care for lost digits.
template <class F, class... Vs>
HWY_INLINE Vec<float> through_double(F f, Vs... v) {
  const Tag<float> d;
  const hn::Half<Tag<float>> half;
  const Tag<double> wide;
  const auto low = f(Vec<double>{hn::PromoteTo(wide, hn::LowerHalf(half, v.raw))}...);
  const auto high = f(Vec<double>{hn::PromoteTo(wide, hn::UpperHalf(half, v.raw))}...);
  return {hn::Combine(d, hn::DemoteTo(half, high.raw), hn::DemoteTo(half, low.raw))};
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
