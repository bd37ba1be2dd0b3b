// ElementStream: uniform and normal numbers for one element, as many as it requests.
//
// Element i draws them from its own stream, block i of the call and its parts, so any thread may
// compute it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <numbers>

#include "aten/ops/random/cpu/random_stream.h"

namespace treadle::cpu {

class ElementStream {
 public:
  ElementStream(const RandomStream& stream, int64_t element) : stream_(stream), element_(element) {}
  // In (0, 1).
  double next() {
    if (used_ == 2) {
      words_ = stream_.block(element_, part_++);
      used_ = 0;
    }
    return open_unit<double>(words_.data(), used_++);
  }
  // The Box-Muller transform. The second number of the pair is dropped.
  double next_normal() {
    const double radius = std::sqrt(-2 * std::log(next()));
    return radius * std::cos(2 * std::numbers::pi * next());
  }

 private:
  const RandomStream& stream_;
  int64_t element_;
  uint64_t part_ = 0;
  std::array<uint32_t, 4> words_{};
  int64_t used_ = 2;
};

// The number of elements in a piece of work if each needs a varying count of numbers.
inline constexpr int64_t kElementGrain = 2048;

}  // namespace treadle::cpu
