// A set of columns as a flag for each: a byte, which is 1 or 0. To set one takes a single store.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

// The flags that are read at once.
inline constexpr uint32_t kFlags = 64;

// Writes the columns whose flags are set, in order, and clears their flags. They are those of the
// groups of kFlags flags from `first` up to `last`. Returns the end of what it wrote. Up to 16
// numbers behind it are written, too.
uint32_t* take_columns(uint8_t* flags, uint32_t first, uint32_t last, uint32_t* columns);

}  // namespace treadle::simd
