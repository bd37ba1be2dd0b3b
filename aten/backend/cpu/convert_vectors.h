// Conversions in vector code, of runs where it is faster than the plain loops of convert.cc. A
// Run converts as many of `n` elements as fill whole vectors, and returns that number. The
// results are those of the plain loops, bit for bit.
//
//   int64_t i = convert_vectors().half_to_float(src, dst, n);
//   for (; i < n; ++i) ...
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

struct ConvertVectors {
  using Run = int64_t (*)(const char* src, char* dst, int64_t n);

  // Consecutive elements.
  Run half_to_float, float_to_half, bfloat16_to_float, float_to_bfloat16, float_to_double;
  // Elements of four bytes from every second position, and to every second position.
  Run from_every_second, to_every_second;

  // Rows of n elements of four or eight bytes, which are all the row's one: that at
  // from + row * stride bytes.
  using Repeat = void (*)(const char* from, int64_t stride, int64_t rows, char* to, int64_t n);
  Repeat repeat_4, repeat_8;
};

// Those of the best target that this machine has.
const ConvertVectors& convert_vectors();

}  // namespace treadle::simd
