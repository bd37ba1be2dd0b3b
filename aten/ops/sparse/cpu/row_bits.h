// A set of columns as bits, in words of 64, by the processor's own instructions for bits.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

// Writes the columns of the words from `first` up to `last`, in order, and clears these words.
// Returns the end of what it wrote. Up to 2 numbers behind it are written, too.
uint32_t* take_columns(uint64_t* words, uint32_t first, uint32_t last, uint32_t* columns);

}  // namespace treadle::simd
