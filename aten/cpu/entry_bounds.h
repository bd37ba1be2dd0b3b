// Whether the entries of an index are in range: a look at each, before anything is written.
#pragma once

#include <cstdint>

namespace treadle::cpu {

// All of values[0, count) are in [0, size), or in [-wrap, size). size < 2^63; wrap is size or 0.
bool all_inside(const int64_t* values, int64_t count, int64_t size, int64_t wrap);

}  // namespace treadle::cpu
