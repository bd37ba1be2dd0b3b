// Sort keys of whole rows, and their values again: what value_key() of sort_key.h gives, as
// vectors.
#pragma once

#include <cstdint>

#include "aten/cpu/sort_key.h"

namespace treadle::cpu {

// Puts the key of each of `count` values into the memory of `keys`, which may be that of `values`.
void value_keys(const float* values, uint32_t* keys, int64_t count, bool descending);
void value_keys(const double* values, uint64_t* keys, int64_t count, bool descending);
// Turns keys into the values they stand for, in the same memory.
void values_of_keys(uint32_t* keys, float* values, int64_t count, bool descending);
void values_of_keys(uint64_t* keys, double* values, int64_t count, bool descending);

}  // namespace treadle::cpu
