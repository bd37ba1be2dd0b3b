// The keys of rows of floating-point values.
//
//   key(x) = all ones               where x is NaN
//          = ~bits(x)               where x is negative, so that -0 comes before 0
//          = bits(x) with the sign  elsewhere
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "aten/cpu/sort_key_rows.cc"
#include "aten/cpu/simd/targets.h"
#include "hwy/foreach_target.h"

#include <limits>

#include "aten/cpu/sort_key_rows.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// keys[i] = f(keys[i]) by vectors; the last ones one by one.
template <class Key, class F>
void map_keys(const Key* from, Key* to, int64_t count, F f) {
  const hn::ScalableTag<Key> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(d, hn::LoadU(d, from + i)), d, to + i);
  const hn::CappedTag<Key, 1> one;
  for (; i < count; ++i) hn::StoreU(f(one, hn::LoadU(one, from + i)), one, to + i);
}

template <class Key>
void keys_of_bits(const Key* bits, Key* keys, int64_t count, Key infinity, bool descending) {
  constexpr Key kSign = Key{1} << (sizeof(Key) * 8 - 1);
  const Key flip = descending ? ~Key{0} : Key{0};
  map_keys(bits, keys, count, [=](auto d, auto x) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> s;
    const auto negative = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(s, x)));
    const auto order = hn::Xor(x, hn::Or(negative, hn::Set(d, kSign)));
    // Of what has no sign, signed and unsigned comparisons agree.
    const auto nan =
        hn::BitCast(d, hn::VecFromMask(s, hn::Gt(hn::BitCast(s, hn::AndNot(hn::Set(d, kSign), x)),
                                                 hn::BitCast(s, hn::Set(d, infinity)))));
    return hn::Xor(hn::Or(order, nan), hn::Set(d, flip));
  });
}

template <class Key>
void bits_of_keys(const Key* keys, Key* bits, int64_t count, bool descending) {
  constexpr Key kSign = Key{1} << (sizeof(Key) * 8 - 1);
  const Key flip = descending ? ~Key{0} : Key{0};
  map_keys(keys, bits, count, [=](auto d, auto key) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> s;
    const auto x = hn::Xor(key, hn::Set(d, flip));
    const auto positive = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(s, x)));
    return hn::Xor(x, hn::Or(hn::Not(positive), hn::Set(d, kSign)));
  });
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::cpu {
namespace {

template <class T>
void to_keys(const T* values, KeyType<T>* keys, int64_t count, bool descending) {
  using Key = KeyType<T>;
  simd::chosen(simd::N_SSE4::keys_of_bits<Key>, simd::N_AVX2::keys_of_bits<Key>,
               simd::N_AVX3::keys_of_bits<Key>)(
      reinterpret_cast<const Key*>(values), keys, count,
      std::bit_cast<Key>(std::numeric_limits<T>::infinity()), descending);
}

template <class T>
void to_values(KeyType<T>* keys, T* values, int64_t count, bool descending) {
  using Key = KeyType<T>;
  simd::chosen(simd::N_SSE4::bits_of_keys<Key>, simd::N_AVX2::bits_of_keys<Key>,
               simd::N_AVX3::bits_of_keys<Key>)(keys, reinterpret_cast<Key*>(values), count,
                                                descending);
}

}  // namespace

void value_keys(const float* values, uint32_t* keys, int64_t count, bool descending) {
  to_keys(values, keys, count, descending);
}
void value_keys(const double* values, uint64_t* keys, int64_t count, bool descending) {
  to_keys(values, keys, count, descending);
}
void values_of_keys(uint32_t* keys, float* values, int64_t count, bool descending) {
  to_values(keys, values, count, descending);
}
void values_of_keys(uint64_t* keys, double* values, int64_t count, bool descending) {
  to_values(keys, values, count, descending);
}

}  // namespace treadle::cpu
#endif  // HWY_ONCE
