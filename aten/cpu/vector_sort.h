// Sorts unsigned keys in place by vectors: what sorting of values, and of keys with their
// positions, comes down to.
#pragma once

#include <cstdint>

namespace treadle::cpu {

// Sorts keys[0, count) in ascending order, in the calling thread, without allocating memory.
void vector_sort(uint32_t* keys, int64_t count);
void vector_sort(uint64_t* keys, int64_t count);

}  // namespace treadle::cpu
