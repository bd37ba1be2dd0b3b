// Random numbers by the buffer, with the widest vectors this machine has.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

// The number of blocks that are computed at once. Buffers have room for a multiple of it.
inline constexpr int64_t kRandomStep = 16;

// Philox of the counters first, first + 1, ...: four numbers each. `part` is the high half of each
// counter. Writes whole steps.
void random_bits(uint64_t seed, uint64_t first, uint64_t part, int64_t blocks, uint32_t* out);

// Box-Muller: from pairs of 32-bit numbers (64-bit ones, high half first, for double) to pairs of
// normally distributed numbers. Writes `count` rounded up to a multiple of 2 * kRandomStep.
void random_normal(const uint32_t* bits, int64_t count, float* out);
void random_normal(const uint32_t* bits, int64_t count, double* out);

// out[i]: the normally distributed number that Box-Muller makes from two uniform ones in (0, 1),
// first[i] and second[i]. Reads and writes whole steps.
void normals_of_uniform(const double* first, const double* second, int64_t count, double* out);

}  // namespace treadle::simd
