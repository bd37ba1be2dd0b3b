// Sorts unsigned keys by vectors. Sorts of values, and of keys with their positions, use it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::cpu {

// Sorts keys[0, count) in ascending order, many of them by several threads, without allocating
// memory.
void vector_sort(uint32_t* keys, int64_t count);
void vector_sort(uint64_t* keys, int64_t count);

// The same for each of `rows` contiguous rows of `size` values, into `to`, which is not `from`. NaN
// is greater than all others, and every NaN becomes the same one; -0 comes before 0.
void vector_sort(const float* from, float* to, int64_t rows, int64_t size, bool descending);
void vector_sort(const double* from, double* to, int64_t rows, int64_t size, bool descending);

}  // namespace treadle::cpu
