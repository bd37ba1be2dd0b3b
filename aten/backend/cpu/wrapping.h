// Sums and products of single elements, defined for every value. Integers wrap, bool's sum is "or"
// and its product "and", and the 16-bit floats compute in float.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "core/base/scalar_type.h"

namespace treadle::cpu {

// Where C++ would promote the operands and overflow would be undefined, arithmetic uses an unsigned
// type.
template <class T>
using Unsigned = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <class T>
constexpr T sum_of(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, bool>)
    return element_value(a) || element_value(b);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  else
    return static_cast<T>(static_cast<compute_type<T>>(a) + static_cast<compute_type<T>>(b));
}

template <class T>
constexpr T product_of(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, bool>)
    return element_value(a) && element_value(b);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
  else
    return static_cast<T>(static_cast<compute_type<T>>(a) * static_cast<compute_type<T>>(b));
}

}  // namespace treadle::cpu
