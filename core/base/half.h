// Half and BFloat16: 16-bit floating types for storage. Arithmetic happens in float; the result is
// rounded to nearest even.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace treadle {

struct BFloat16 {
  uint16_t bits = 0;
  constexpr BFloat16() = default;
  BFloat16(float value)
      : bits(round_bits(std::bit_cast<uint32_t>(value))) {}  // NOLINT: a number type
  operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }  // NOLINT
  static constexpr BFloat16 from_bits(uint16_t b) {
    BFloat16 r;
    r.bits = b;
    return r;
  }

 private:
  static constexpr uint16_t round_bits(uint32_t u) {
    if ((u & 0x7fffffffu) > 0x7f800000u)
      return static_cast<uint16_t>((u >> 16) | 0x40);  // stay a (quiet) NaN
    return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
  }
};

struct Half {
  uint16_t bits = 0;
  constexpr Half() = default;
  Half(float value) : bits(from_float(value)) {}     // NOLINT: a number type
  operator float() const { return to_float(bits); }  // NOLINT
  static constexpr Half from_bits(uint16_t b) {
    Half r;
    r.bits = b;
    return r;
  }

 private:
  // Both use the exact scaling of float arithmetic. They multiply by a power of two so that the
  // hardware rounds (or renormalises) at the half type's last place.
  static uint16_t from_float(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
    const uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u)
      return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to 65536 or more
    if (magnitude < 0x38800000u) {  // below 2^-14: subnormal; 0.5f aligns the half's last place
                                    // with the float's
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
    }
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }
  static float to_float(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
    const uint32_t magnitude = h & 0x7fffu;
    if (magnitude >= 0x7c00u)
      return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    const float scaled =
        std::bit_cast<float>(magnitude << 13) * 0x1p112f;  // exact, subnormals included
    return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | sign);
  }
};

}  // namespace treadle
