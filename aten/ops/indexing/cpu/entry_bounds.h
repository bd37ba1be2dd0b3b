// The entries of an index: their range check, and the offsets that they stand for.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::cpu {

// All of values[0, count) are in [0, size), or in [-wrap, size). size < 2^63; wrap is size or 0.
bool all_inside(const int64_t* values, int64_t count, int64_t size, int64_t wrap);

// to[i] = offset of values[i], or to[i] plus that offset. The entries are as above, with a distance
// of `stride` elements. False if some entry is out of range. The offsets then have no meaning.
bool put_offsets(const int64_t* values, int64_t count, int64_t size, int64_t wrap, int64_t stride,
                 bool add, int64_t* to);

}  // namespace treadle::cpu
