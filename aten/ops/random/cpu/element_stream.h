// ElementStream: uniform and normal numbers for one element, as many as it requests.
//
//   for_each_element(stream, n, normal, [&](int64_t i, ElementStream& numbers) { ... });
//
// Element i draws them from its own stream, block i of the call and its parts, so any thread may
// compute it. The first numbers, which are enough for most elements, are computed by vectors for
// many elements at once.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <numbers>

#include "aten/ops/random/cpu/random_stream.h"

namespace treadle::cpu {

// The first numbers of the streams of a few elements.
class FirstNumbers {
 public:
  static constexpr int64_t kElements = 128;
  static constexpr int64_t kUniform = 4;  // two of each part
  static constexpr int64_t kNormal = 2;

  // `normal`: also the normal numbers.
  void fill(const RandomStream& stream, int64_t first, int64_t count, bool normal) {
    alignas(64) uint32_t words[4 * kElements];
    for (int64_t at = 0; at < kUniform; at += 2) {
      stream.fill(first, count, words, static_cast<uint64_t>(at / 2));
      const int64_t steps = blocks_for(count, simd::kRandomStep) * simd::kRandomStep;
      for (int64_t i = 0; i < steps; ++i) {
        uniform_[at][i] = open_unit<double>(words + 4 * i, 0);
        uniform_[at + 1][i] = open_unit<double>(words + 4 * i, 1);
      }
    }
    first_ = first;
    has_normal_ = normal;
    for (int64_t at = 0; normal && at < kNormal; ++at)
      simd::normals_of_uniform(uniform_[at], uniform_[at + 1], count, normal_[at]);
  }
  // Number `at` of the stream of an element.
  bool has_uniform(int64_t at) const { return at < kUniform; }
  double uniform(int64_t element, int64_t at) const { return uniform_[at][element - first_]; }
  // The normal number that the numbers `at` and `at` + 1 make.
  bool has_normal(int64_t at) const { return has_normal_ && at < kNormal; }
  double normal(int64_t element, int64_t at) const { return normal_[at][element - first_]; }

 private:
  static_assert(kElements % simd::kRandomStep == 0 && kNormal < kUniform);
  alignas(64) double uniform_[kUniform][kElements];
  alignas(64) double normal_[kNormal][kElements];
  int64_t first_ = 0;
  bool has_normal_ = false;
};

class ElementStream {
 public:
  ElementStream(const RandomStream& stream, const FirstNumbers& known, int64_t element)
      : stream_(stream), known_(known), element_(element) {}
  // In (0, 1).
  double next() {
    const int64_t at = at_++;
    if (known_.has_uniform(at)) [[likely]]
      return known_.uniform(element_, at);
    if (at % 2 == 0) words_ = stream_.block(element_, static_cast<uint64_t>(at / 2));
    return open_unit<double>(words_.data(), at % 2);
  }
  // The Box-Muller transform. The second number of the pair is dropped.
  double next_normal() {
    if (known_.has_normal(at_)) [[likely]] {
      at_ += 2;
      return known_.normal(element_, at_ - 2);
    }
    const double radius = std::sqrt(-2 * std::log(next()));
    return radius * std::cos(2 * std::numbers::pi * next());
  }

 private:
  const RandomStream& stream_;
  const FirstNumbers& known_;
  int64_t element_;
  int64_t at_ = 0;  // of the next number in the stream
  std::array<uint32_t, 4> words_;
};

// Calls f(i, numbers) for the elements [begin, end). `normal`: most elements begin with a normal
// number, perhaps behind a uniform one.
template <class F>
void for_elements(const RandomStream& stream, int64_t begin, int64_t end, bool normal, F&& f) {
  FirstNumbers known;
  for (int64_t first = begin; first < end; first += FirstNumbers::kElements) {
    const int64_t last = std::min(end, first + FirstNumbers::kElements);
    known.fill(stream, first, last - first, normal);
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
void for_each_element(const RandomStream& stream, int64_t n, bool normal, F&& f) {
  parallel_for(n, kElementGrain,
               [&](int64_t begin, int64_t end) { for_elements(stream, begin, end, normal, f); });
}

}  // namespace treadle::cpu
