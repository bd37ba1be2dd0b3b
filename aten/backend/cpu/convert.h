// Conversions between element types, one function per pair, over any strides. No conversion is
// undefined. A floating number outside an integer's range saturates as a 64-bit integer and then
// wraps. A complex number loses its imaginary part.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/scalar_type.h"

namespace treadle::simd {

// Converts `n` elements; strides are in bytes and may be zero or negative. With equal types it
// copies.
using ConvertFn = void(const char* src, int64_t src_stride, char* dst, int64_t dst_stride,
                       int64_t n);
ConvertFn* converter(ScalarType from, ScalarType to);

template <class To, class From>
inline To convert_element(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (is_complex_type<From>) {
    if constexpr (is_complex_type<To>) {
      return To(static_cast<typename To::value_type>(v.real()),
                static_cast<typename To::value_type>(v.imag()));
    } else if constexpr (std::is_same_v<To, bool>) {
      return v.real() != 0 || v.imag() != 0;
    } else {
      return convert_element<To>(v.real());
    }
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert_element<To>(static_cast<float>(v));
  } else if constexpr (is_complex_type<To>) {
    return To(static_cast<typename To::value_type>(v), 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != 0;
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(v));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    constexpr From kEnd = static_cast<From>(9223372036854775808.0);
    if constexpr (std::is_same_v<To, uint64_t>) {
      if (v >= kEnd) return v < 2 * kEnd ? static_cast<uint64_t>(v) : UINT64_MAX;
    }
    const int64_t wide = v >= -kEnd && v < kEnd ? static_cast<int64_t>(v)
                         : v >= kEnd            ? INT64_MAX
                                                : INT64_MIN;
    return static_cast<To>(wide);
  } else {
    return static_cast<To>(v);
  }
}

}  // namespace treadle::simd
