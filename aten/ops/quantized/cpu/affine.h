// Loops that turn real numbers into whole ones.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace treadle::cpu {

// The whole numbers Q that real numbers are rounded to: the nearest, of two the even one, within
// the range. NaN becomes the least. With `relu`, negative numbers become 0.
template <class Q>
class Rounded {
 public:
  explicit Rounded(int64_t zero_point, bool relu = false)
      : zero_(static_cast<int32_t>(zero_point)) {
    constexpr auto kLow = static_cast<int64_t>(std::numeric_limits<Q>::min());
    constexpr auto kHigh = static_cast<int64_t>(std::numeric_limits<Q>::max());
    low_ = relu ? 0.0f : static_cast<float>(kLow - zero_point);
    high_ = static_cast<float>(kHigh - zero_point);
  }
  // `x` is in units of the scale. Compilers turn a loop of this into vector instructions: a float
  // this large has no digits behind the point, so the sum is rounded.
  Q operator()(float x) const {
    x = x > low_ ? x : low_;
    x = x < high_ ? x : high_;
    constexpr float kWhole = 12582912.0f;  // 1.5 * 2^23
    return static_cast<Q>(static_cast<int32_t>((x + kWhole) - kWhole) + zero_);
  }

 private:
  int32_t zero_;
  float low_, high_;
};
template <>
class Rounded<int32_t> {
 public:
  explicit Rounded(int64_t zero_point) : zero_(zero_point) {}
  int32_t operator()(float x) const {
    // The sum of a number of so few bits and of a zero point is exact.
    const double at = std::clamp(__builtin_nearbyint(static_cast<double>(x)), -0x1p40, 0x1p40);
    const double sum = at == at ? at + static_cast<double>(zero_) : -0x1p31;
    return static_cast<int32_t>(std::clamp(sum, -0x1p31, 0x1p31 - 1));
  }

 private:
  int64_t zero_;
};

// Rounds `count` numbers.
template <class Q, class T, class F>
void round_all(const T* __restrict from, int64_t count, const Rounded<Q> rounded, F&& real,
               Q* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] = rounded(real(from[i]));
}

}  // namespace treadle::cpu
