// For the emulator: conversions by the bits. Generated kernels include it, too, which have no
// standard library.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::cuda {

namespace emulator {
// Ends the thread that calls it.
[[noreturn]] void leave_thread();
}  // namespace emulator

inline float float_of_half(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, size = bits & 0x7fffu;
  if (size >= 0x7c00u) return __builtin_bit_cast(float, sign | 0x7f800000u | (size & 0x3ffu) << 13);
  // Below the normal ones a float has digits enough.
  if (size < 0x400u) {
    const float v = static_cast<float>(size) * 0x1p-24f;
    return sign ? -v : v;
  }
  return __builtin_bit_cast(float, sign | ((size << 13) + (112u << 23)));
}
inline uint16_t half_bits(float v) {
  const uint32_t u = __builtin_bit_cast(uint32_t, v), size = u & 0x7fffffffu;
  const auto sign = static_cast<uint16_t>(u >> 16 & 0x8000u);
  if (size > 0x7f800000u) return 0x7fffu;
  if (size >= 0x477ff000u) return sign | 0x7c00u;  // rounds to 65520 or more
  if (size < 0x38800000u) {
    // The sum's last digit is worth 2^-24: the addition rounds.
    const float sum = __builtin_bit_cast(float, size) + 0.5f;
    return static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, sum) - 0x3f000000u));
  }
  const uint32_t rounded = size + 0xfffu + (size >> 13 & 1u);
  return static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
}
inline uint16_t bfloat16_bits(float v) {
  const uint32_t u = __builtin_bit_cast(uint32_t, v);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
  return static_cast<uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

[[noreturn]] inline void end_thread() { emulator::leave_thread(); }

}  // namespace treadle::cuda
