// Sort keys of floating-point values, and the values from their keys: value_key() and
// value_of_key() of aten/ops/sorting/cpu/sort_key.h for vectors.
//
//   key(x) = all ones               where x is NaN
//          = ~bits(x)               where x is negative, so that -0 comes before 0
//          = bits(x) with the sign  elsewhere
//
// and the complement of that where the order is descending.
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_SORT_KEY_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_SORT_KEY_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_SORT_KEY_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_SORT_KEY_INL_H_
#endif

#include <cstdint>
#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Key>
inline constexpr Key kSignBit = Key{1} << (sizeof(Key) * 8 - 1);

template <class Key>
struct KeyOfBits {
  Key infinity;  // its bits
  bool descending;

  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const hn::RebindToSigned<D> s;
    const auto sign = hn::Set(d, kSignBit<Key>);
    const auto negative = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(s, x)));
    const auto order = hn::Xor(x, hn::Or(negative, sign));
    // For values without a sign, signed and unsigned comparisons agree.
    const auto nan =
        hn::BitCast(d, hn::VecFromMask(s, hn::Gt(hn::BitCast(s, hn::AndNot(sign, x)),
                                                 hn::BitCast(s, hn::Set(d, infinity)))));
    return hn::Xor(hn::Or(order, nan), hn::Set(d, descending ? ~Key{0} : Key{0}));
  }
};

template <class Key>
struct BitsOfKey {
  bool descending;

  template <class D, class V>
  HWY_INLINE V operator()(D d, V key) const {
    const hn::RebindToSigned<D> s;
    const auto x = hn::Xor(key, hn::Set(d, descending ? ~Key{0} : Key{0}));
    const auto positive = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(s, x)));
    return hn::Xor(x, hn::Or(hn::Not(positive), hn::Set(d, kSignBit<Key>)));
  }
};

// to[i] = f(from[i]) by vectors, and the last elements one by one. The two ranges may be the same
// memory.
template <class Key, class F>
HWY_INLINE void map_keys(const Key* from, Key* to, int64_t count, F f) {
  const hn::ScalableTag<Key> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(d, hn::LoadU(d, from + i)), d, to + i);
  const hn::CappedTag<Key, 1> one;
  for (; i < count; ++i) hn::StoreU(f(one, hn::LoadU(one, from + i)), one, to + i);
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
