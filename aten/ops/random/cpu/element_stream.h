// ElementStream: uniform and normal numbers for one element, as many as it requests.
//
//   for_each_element(stream, n, [&](int64_t i, ElementStream& numbers) { ... });
//
// Element i draws them from its own stream, block i of the call and its parts, so any thread may
// compute it. The first parts, which are enough for most elements, are computed by vectors for many
// elements at once.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <numbers>

#include "aten/ops/random/cpu/random_stream.h"

namespace treadle::cpu {

// The first parts of the blocks of a few elements.
class FirstParts {
 public:
  static constexpr int64_t kElements = 128;
  static constexpr uint64_t kParts = 2;

  void fill(const RandomStream& stream, int64_t first, int64_t count) {
    for (uint64_t part = 0; part < kParts; ++part) stream.fill(first, count, words_[part], part);
    first_ = first;
  }
  const uint32_t* of(int64_t element, uint64_t part) const {
    return words_[part] + 4 * (element - first_);
  }

 private:
  static_assert(kElements % simd::kRandomStep == 0);
  alignas(64) uint32_t words_[kParts][4 * kElements];
  int64_t first_ = 0;
};

class ElementStream {
 public:
  ElementStream(const RandomStream& stream, const FirstParts& known, int64_t element)
      : stream_(stream), known_(known), element_(element) {}
  // In (0, 1).
  double next() {
    if (used_ == 2) next_part();
    return open_unit<double>(words_, used_++);
  }
  // The Box-Muller transform. The second number of the pair is dropped.
  double next_normal() {
    const double radius = std::sqrt(-2 * std::log(next()));
    return radius * std::cos(2 * std::numbers::pi * next());
  }

 private:
  void next_part() {
    const uint64_t part = part_++;
    used_ = 0;
    if (part < FirstParts::kParts) [[likely]] {
      words_ = known_.of(element_, part);
    } else {
      own_ = stream_.block(element_, part);
      words_ = own_.data();
    }
  }

  const RandomStream& stream_;
  const FirstParts& known_;
  int64_t element_;
  uint64_t part_ = 0;
  std::array<uint32_t, 4> own_;
  const uint32_t* words_ = nullptr;
  int64_t used_ = 2;
};

// Calls f(i, numbers) for the elements [begin, end).
template <class F>
void for_elements(const RandomStream& stream, int64_t begin, int64_t end, F&& f) {
  FirstParts known;
  for (int64_t first = begin; first < end; first += FirstParts::kElements) {
    const int64_t last = std::min(end, first + FirstParts::kElements);
    known.fill(stream, first, last - first);
    for (int64_t i = first; i < last; ++i) {
      ElementStream numbers(stream, known, i);
      f(i, numbers);
    }
  }
}

// The number of elements in a piece of work if each needs a varying count of numbers.
inline constexpr int64_t kElementGrain = 2048;

// Calls f(i, numbers) for the elements [0, n).
template <class F>
void for_each_element(const RandomStream& stream, int64_t n, F&& f) {
  parallel_for(n, kElementGrain,
               [&](int64_t begin, int64_t end) { for_elements(stream, begin, end, f); });
}

}  // namespace treadle::cpu
