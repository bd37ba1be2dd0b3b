// Conversions in vector code, of runs where it is faster than the plain loops of convert.cc. A
// Run converts some of `n` elements, from the first on, and returns how many. The results are those
// of the plain loops, bit for bit.
//
//   int64_t i = convert_vectors().from_every_second(src, dst, n);
//   for (; i < n; ++i) ...
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "core/base/scalar_type.h"

namespace treadle::simd {

struct ConvertVectors {
  using Run = int64_t (*)(const char* src, char* dst, int64_t n);

  // Consecutive elements, by their types from and to; null where there is no such loop.
  std::array<std::array<Run, kNumScalarTypes>, kNumScalarTypes> of_types;
  // Elements of four bytes from every second position, and to every second position.
  Run from_every_second, to_every_second;

  // Elements of four or eight bytes backwards: the first is at src, the next one before it.
  Run backwards_4, backwards_8;

  // Rows of n elements of four or eight bytes, which are all the row's one: that at
  // from + row * stride bytes.
  using Repeat = void (*)(const char* from, int64_t stride, int64_t rows, char* to, int64_t n);
  Repeat repeat_4, repeat_8;
};

// Those of the best target that this machine has.
const ConvertVectors& convert_vectors();

}  // namespace treadle::simd
