// Sort keys: unsigned integers in the order of the elements, NaN last, so that sorting is comparing
// integers.
//
//   ordered_key(-1.0f) < ordered_key(-0.0f) == ordered_key(0.0f) < ordered_key(inf) <
//   ordered_key(nan)
//
// Sorting pairs of a key and its position is stable, as no two pairs are equal.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/scalar_type.h"

namespace treadle::cpu {

template <class T>
using KeyType =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class T>
KeyType<T> ordered_key(T value) {
  using Key = KeyType<T>;
  constexpr Key kSign = Key{1} << (sizeof(T) * 8 - 1);
  if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<Key>(std::is_signed_v<T> ? static_cast<Key>(value) ^ kSign
                                                : static_cast<Key>(value));
  } else {
    const auto number = static_cast<compute_type<T>>(value);
    if (std::isnan(number)) return static_cast<Key>(~Key{0});
    if (number == 0) return kSign;
    const Key bits = std::bit_cast<Key>(value);
    return static_cast<Key>(bits & kSign ? ~bits : bits | kSign);
  }
}

// The key where the order is descending: NaN first, equal elements still in their own order.
template <class T>
KeyType<T> ordered_key(T value, bool descending) {
  const KeyType<T> key = ordered_key(value);
  return static_cast<KeyType<T>>(descending ? ~key : key);
}

template <class Key>
struct KeyAt {
  Key key;
  int64_t at;
  friend bool operator<(const KeyAt& a, const KeyAt& b) {
    return a.key != b.key ? a.key < b.key : a.at < b.at;
  }
};

}  // namespace treadle::cpu
