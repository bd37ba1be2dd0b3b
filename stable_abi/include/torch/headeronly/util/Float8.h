// The types of 8 bits and less, which extensions store and move: their bits, without arithmetic.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace c10 {

#define TREADLE_BITS(name)                                  \
  struct name {                                             \
    uint8_t x = 0;                                          \
    struct from_bits_t {};                                  \
    static constexpr from_bits_t from_bits() { return {}; } \
    constexpr name() = default;                             \
    constexpr name(uint8_t bits, from_bits_t) : x(bits) {}  \
  };
TREADLE_BITS(Float8_e5m2)
TREADLE_BITS(Float8_e4m3fn)
TREADLE_BITS(Float8_e5m2fnuz)
TREADLE_BITS(Float8_e4m3fnuz)
TREADLE_BITS(Float8_e8m0fnu)
TREADLE_BITS(Float4_e2m1fn_x2)
#undef TREADLE_BITS

}  // namespace c10

namespace torch::headeronly {
using c10::Float4_e2m1fn_x2;
using c10::Float8_e4m3fn;
using c10::Float8_e4m3fnuz;
using c10::Float8_e5m2;
using c10::Float8_e5m2fnuz;
using c10::Float8_e8m0fnu;
}  // namespace torch::headeronly
