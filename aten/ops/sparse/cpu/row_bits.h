// A set of columns as bits, in words of 64, by the processor's own instructions for bits.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace treadle::simd {

// How many columns are in the words words[numbers[0]], ..., words[numbers[count - 1]].
int64_t count_columns(const uint64_t* words, const uint32_t* numbers, size_t count);

// Writes the columns of the words from `first` up to `last`, in order, and clears these words.
// Returns the end of what it wrote. Up to 2 numbers behind it are written, too.
uint32_t* take_columns(uint64_t* words, uint32_t first, uint32_t last, uint32_t* columns);

}  // namespace treadle::simd
