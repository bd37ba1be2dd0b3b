// Conversions of the 16-bit floating types, over all their values.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace treadle {
namespace {

// The value of a 16-bit pattern, by the definition of the format.
double value_of(uint16_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

template <class T>
void every_value(int exponent_bits) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const T h = T::from_bits(static_cast<uint16_t>(bits));
    const double expected = value_of(h.bits, exponent_bits);
    const float f = h;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(f)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(f)))) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(f), expected) << bits;
    ASSERT_EQ(std::signbit(f), bits >> 15) << bits;
    ASSERT_EQ(T(f).bits, bits);
  }
}

TEST(Half, EveryValueConvertsToFloatAndBack) { every_value<Half>(5); }
TEST(BFloat16, EveryValueConvertsToFloatAndBack) { every_value<BFloat16>(8); }

// Between each two neighbours: below the middle rounds down, above it up, and the middle to the
// even one.
template <class T>
void every_rounding(uint16_t largest) {
  for (uint32_t bits = 0; bits < largest; ++bits) {
    const float low = T::from_bits(static_cast<uint16_t>(bits)),
                high = T::from_bits(static_cast<uint16_t>(bits + 1));
    const float middle = static_cast<float>((static_cast<double>(low) + high) / 2);
    ASSERT_EQ(T(std::nextafter(middle, low)).bits, bits);
    ASSERT_EQ(T(std::nextafter(middle, high)).bits, bits + 1);
    ASSERT_EQ(T(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(T(-middle).bits, (bits % 2 == 0 ? bits : bits + 1) | 0x8000u);
  }
}

TEST(Half, RoundsToNearestEven) { every_rounding<Half>(0x7bff); }
TEST(BFloat16, RoundsToNearestEven) { every_rounding<BFloat16>(0x7f7f); }

TEST(Half, LargeValuesBecomeInfinity) {
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(-1e30f).bits, 0xfc00);
  EXPECT_EQ(Half(std::numeric_limits<float>::infinity()).bits, 0x7c00);
  EXPECT_EQ(Half(1e-10f).bits, 0);
}

}  // namespace
}  // namespace treadle
