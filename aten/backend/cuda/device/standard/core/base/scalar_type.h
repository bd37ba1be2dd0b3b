// The element types that the device does not define itself.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "aten/backend/cuda/device/instructions.h"

namespace treadle {

// 16-bit floats. The arithmetic is in float.
struct Half {
  uint16_t bits;
  Half() = default;
  explicit Half(float v) : bits(cuda::half_bits(v)) {}
  explicit operator float() const { return cuda::float_of_half(bits); }
};
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  // Rounds to nearest, ties to even; NaN stays NaN.
  explicit BFloat16(float v) {
    const uint32_t u = __float_as_uint(v);
    bits = (u & 0x7fffffffu) > 0x7f800000u
               ? static_cast<uint16_t>((u >> 16) | 0x40u)
               : static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  explicit operator float() const { return __uint_as_float(static_cast<uint32_t>(bits) << 16); }
};

// A bool with a nonzero byte is true, whatever the byte.
template <class T>
inline T element_value(const T& element) {
  if constexpr (std::is_same_v<T, bool>)
    return reinterpret_cast<const uint8_t&>(element) != 0;
  else
    return element;
}

template <class T>
inline constexpr bool is_complex_type = false;
template <class R>
inline constexpr bool is_complex_type<std::complex<R>> = true;

enum class ScalarType : uint8_t;

}  // namespace treadle
