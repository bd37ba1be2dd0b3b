// A set of columns as bits, compiled once per target.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/sparse/cpu/row_bits.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <bit>

#include "aten/ops/sparse/cpu/row_bits.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

uint32_t* take_columns(uint64_t* words, uint32_t first, uint32_t last, uint32_t* columns) {
  for (uint32_t number = first; number < last; ++number) {
    uint64_t bits = words[number];
    words[number] = 0;
    // How many bits a word has is not foreseen by a processor, so that two are written at once.
    uint32_t* to = columns;
    columns += __builtin_popcountll(bits);
    do {
      for (int k = 0; k < 2; ++k) {
        to[k] = number * 64 + static_cast<uint32_t>(std::countr_zero(bits));
        bits &= bits - 1;
      }
      to += 2;
    } while (bits != 0);
  }
  return columns;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(take_columns);

uint32_t* take_columns(uint64_t* words, uint32_t first, uint32_t last, uint32_t* columns) {
  return HWY_DYNAMIC_DISPATCH(take_columns)(words, first, last, columns);
}

}  // namespace treadle::simd
#endif  // HWY_ONCE
