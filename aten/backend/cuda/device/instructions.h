// Device instructions without a C++ equivalent. The emulator has its own versions (emulator/).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::cuda {

__device__ inline float float_of_half(uint16_t bits) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
  return v;
}
// Rounds to nearest, ties to even; NaN stays NaN.
__device__ inline uint16_t half_bits(float v) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));
  return bits;
}
__device__ inline uint16_t bfloat16_bits(float v) {
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(v));
  return bits;
}

// This thread ends; the others continue.
[[noreturn]] __device__ inline void end_thread() {
  asm volatile("exit;");
  __builtin_unreachable();
}

}  // namespace treadle::cuda
