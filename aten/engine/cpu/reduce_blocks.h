// Reduction blocks: the loops that exist per reduction, dtype and instruction set, and the function
// that runs them over any operand.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "aten/engine/reduce.h"

namespace treadle::simd {

// Accumulators and elements are of the compute type.
inline constexpr int kRowsAtOnce = 4;

struct ReduceFunctions {
  // acc[i] = the result of no element; null where there is none.
  void (*init)(void* acc, int64_t n) = nullptr;
  // acc[r] = the fold of row r of `rows`: n >= 1 elements. Rows begin `distance` bytes apart, the
  // first at x. The order of the fold depends on n alone.
  void (*inner)(void* acc, const void* x, int64_t n, int64_t rows, int64_t distance) = nullptr;
  // acc[i] = step(acc[i], x[i]) for each of `rows` rows of n elements, one after the other. They
  // begin `distance` bytes apart, the first at x. If `next` is given, there are kRowsAtOnce rows,
  // and kRowsAtOnce * n elements from `next` on are asked for meanwhile.
  void (*outer)(void* acc, const void* x, int64_t n, int64_t rows, int64_t distance,
                const void* next) = nullptr;
  // inner and outer of elements of float, for accumulators of double; null where there are none.
  void (*inner_of_float)(void* acc, const void* x, int64_t n, int64_t rows,
                         int64_t distance) = nullptr;
  void (*outer_of_float)(void* acc, const void* x, int64_t n, int64_t rows, int64_t distance,
                         const void* next) = nullptr;
  // acc[i] = combine(acc[i], other[i])
  void (*combine)(void* acc, const void* other, int64_t n) = nullptr;
  // acc[i] = final(acc[i], count)
  void (*final)(void* acc, int64_t n, double count) = nullptr;
};
// The functions of one target, by compute dtype; null where the reduction has none.
struct ReduceBlocks {
  std::array<ReduceFunctions, kNumScalarTypes> by_dtype{};
  // Whether float is folded in double: each factor's rounding is in a product, however it is cut.
  bool widens = false;
};

// The kernel of every cell: runs the reduction's functions for `call.compute`.
void run_reduce(const ReduceCall& call, const ReduceBlocks& blocks);

}  // namespace treadle::simd
