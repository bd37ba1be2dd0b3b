// Sort keys: unsigned integers in the order of the elements, NaN last. Sorting then compares
// integers.
//
//   ordered_key(-1.0f) < ordered_key(-0.0f)
//   ordered_key(-0.0f) == ordered_key(0.0f)
//   ordered_key(0.0f) < ordered_key(inf)
//   ordered_key(inf) < ordered_key(nan)
//
// Sorting pairs of a key and its position is stable, because no two pairs are equal.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/scalar_type.h"

namespace treadle::cpu {

template <class T>
using KeyType =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class T>
constexpr KeyType<T> ordered_key(const T& value) {
  using Key = KeyType<T>;
  constexpr Key kSign = Key{1} << (sizeof(T) * 8 - 1);
  if constexpr (std::is_same_v<T, bool>) {
    return element_value(value);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<Key>(std::is_signed_v<T> ? static_cast<Key>(value) ^ kSign
                                                : static_cast<Key>(value));
  } else {
    // It uses the bits alone, without branches, so that loops over it vectorise.
    constexpr int kMantissa = sizeof(T) == 8                ? 52
                              : sizeof(T) == 4              ? 23
                              : std::is_same_v<T, BFloat16> ? 7
                                                            : 10;
    constexpr Key kInfinity = static_cast<Key>((kSign - 1) >> kMantissa << kMantissa);
    const Key bits = std::bit_cast<Key>(value);
    const Key magnitude = static_cast<Key>(bits & ~kSign);
    // Masks of all ones: `reversed` where the order is reversed, `nan` where the value is NaN.
    const Key reversed =
        static_cast<Key>(-static_cast<Key>((magnitude != bits) & (magnitude != 0)));
    const Key nan = static_cast<Key>(-static_cast<Key>(magnitude > kInfinity));
    return static_cast<Key>(((magnitude | kSign) ^ reversed) | nan);
  }
}

// The key for descending order: NaN first, equal elements still in their own order.
template <class T>
constexpr KeyType<T> ordered_key(const T& value, bool descending) {
  const KeyType<T> key = ordered_key(value);
  return static_cast<KeyType<T>>(descending ? ~key : key);
}

// A key from which the value can be restored: -0 comes before 0, and every NaN becomes the same
// one.
template <class T>
constexpr KeyType<T> value_key(const T& value, bool descending) {
  using Key = KeyType<T>;
  Key key = ordered_key(value);
  if constexpr (!std::is_integral_v<T>) {
    constexpr Key kNegativeZero = Key{1} << (sizeof(T) * 8 - 1);
    key = static_cast<Key>(key - (std::bit_cast<Key>(value) == kNegativeZero ? 1 : 0));
  }
  return static_cast<Key>(descending ? ~key : key);
}

template <class T>
constexpr T value_of_key(KeyType<T> key, bool descending) {
  using Key = KeyType<T>;
  constexpr Key kSign = Key{1} << (sizeof(T) * 8 - 1);
  if (descending) key = static_cast<Key>(~key);
  if constexpr (std::is_same_v<T, bool>) {
    return key != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(std::is_signed_v<T> ? key ^ kSign : key);
  } else {
    // The key of NaN is all bits but the sign, which is itself a NaN.
    return std::bit_cast<T>(static_cast<Key>(key & kSign ? key ^ kSign : ~key));
  }
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
