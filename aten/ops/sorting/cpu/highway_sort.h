// Highway's quicksort by vectors, compiled for our targets.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::cpu {

// An integer of 128 bits.
struct alignas(16) WideKey {
  uint64_t low, high;
};

// Sorts keys[0, count) in ascending order, without allocating memory. No order of keys makes it
// slower than count * log(count).
void highway_sort(uint16_t* keys, int64_t count);
void highway_sort(uint32_t* keys, int64_t count);
void highway_sort(uint64_t* keys, int64_t count);
void highway_sort(WideKey* keys, int64_t count);

}  // namespace treadle::cpu
