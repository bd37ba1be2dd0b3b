// Elements of any floating type in memory as vectors of their compute type: 16-bit floats become
// floats as they are loaded, and are rounded as they are stored.
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_NARROW_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_NARROW_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_NARROW_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_NARROW_INL_H_
#endif

#include <algorithm>

#include "aten/scalar/vec-inl.h"
#include "core/base/scalar_type.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// Whether the target has instructions for conversions of Half.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr bool kHasHalf = true;
#else
inline constexpr bool kHasHalf = false;
#endif

// All lanes of D, a tag of float.
template <class D>
HWY_INLINE hn::VFromD<D> load_narrow(D d, const Half* p) {
  const hn::Rebind<hwy::float16_t, D> half;
  return hn::PromoteTo(d, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(p)));
}
template <class D>
HWY_INLINE void store_narrow(hn::VFromD<D> v, D /*d*/, Half* p) {
  const hn::Rebind<hwy::float16_t, D> half;
  hn::StoreU(hn::DemoteTo(half, v), half, reinterpret_cast<hwy::float16_t*>(p));
}
template <class D>
HWY_INLINE hn::VFromD<D> load_narrow(D d, const BFloat16* p) {
  const hn::RebindToUnsigned<D> bits;
  const hn::Rebind<uint16_t, D> narrow;
  const auto high = hn::LoadU(narrow, reinterpret_cast<const uint16_t*>(p));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, high)));
}
template <class D>
HWY_INLINE void store_narrow(hn::VFromD<D> v, D /*d*/, BFloat16* p) {
  const hn::RebindToUnsigned<D> bits;
  const hn::RebindToSigned<D> whole;
  const hn::Rebind<uint16_t, D> narrow;
  const auto u = hn::BitCast(bits, v), high = hn::ShiftRight<16>(u);
  // To the nearest, of two the even one; a NaN stays one.
  const auto odd = hn::And(high, hn::Set(bits, 1));
  const auto nearest = hn::ShiftRight<16>(hn::Add(u, hn::Add(odd, hn::Set(bits, 0x7fff))));
  const auto is_nan = hn::RebindMask(bits, hn::IsNaN(v));
  const auto y = hn::IfThenElse(is_nan, hn::Or(high, hn::Set(bits, 0x40)), nearest);
  hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(whole, y)), narrow, reinterpret_cast<uint16_t*>(p));
}

template <class T>
inline constexpr bool kConvertsLanes = std::is_same_v<T, BFloat16> ||
                                       (std::is_same_v<T, Half> && kHasHalf);

// The first `n` <= kLanes elements; the other lanes are zero.
template <class T>
HWY_INLINE Vec<compute_type<T>> load_computed(const T* p, int64_t n) {
  using V = Vec<compute_type<T>>;
  if constexpr (std::is_same_v<T, compute_type<T>>) {
    return load_lanes(p, n);
  } else if constexpr (kConvertsLanes<T>) {
    if (n == V::kLanes) return {load_narrow(Tag<float>(), p)};
    T few[V::kLanes] = {};
    std::copy_n(p, n, few);
    return {load_narrow(Tag<float>(), few)};
  } else {
    HWY_ALIGN float lanes[V::kLanes] = {};
    for (int64_t i = 0; i < n; ++i) lanes[i] = static_cast<float>(p[i]);
    return {hn::Load(Tag<float>(), lanes)};
  }
}
template <class T>
HWY_INLINE void store_computed(Vec<compute_type<T>> v, T* p, int64_t n) {
  constexpr int64_t kLanes = Vec<compute_type<T>>::kLanes;
  if constexpr (std::is_same_v<T, compute_type<T>>) {
    store_lanes(v, p, n);
  } else if constexpr (kConvertsLanes<T>) {
    if (n == kLanes) return store_narrow(v.raw, Tag<float>(), p);
    T few[kLanes];
    store_narrow(v.raw, Tag<float>(), few);
    std::copy_n(few, n, p);
  } else {
    HWY_ALIGN float lanes[kLanes];
    hn::Store(v.raw, Tag<float>(), lanes);
    for (int64_t i = 0; i < n; ++i) p[i] = static_cast<T>(lanes[i]);
  }
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
