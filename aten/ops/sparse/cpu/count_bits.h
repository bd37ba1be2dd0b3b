// The number of bits that are set, by the processor's own instructions.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace treadle::simd {

// Those of the words words[numbers[0]], ..., words[numbers[count - 1]].
int64_t count_bits(const uint64_t* words, const uint32_t* numbers, size_t count);

}  // namespace treadle::simd
