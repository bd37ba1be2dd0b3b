// The number of bits that are set, compiled once per target.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/sparse/cpu/count_bits.cc"
#include "aten/backend/cpu/foreach_target.h"

#include "aten/ops/sparse/cpu/count_bits.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

int64_t count_bits(const uint64_t* words, const uint32_t* numbers, size_t count) {
  int64_t bits = 0;
  for (size_t i = 0; i < count; ++i) bits += __builtin_popcountll(words[numbers[i]]);
  return bits;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(count_bits);

int64_t count_bits(const uint64_t* words, const uint32_t* numbers, size_t count) {
  return HWY_DYNAMIC_DISPATCH(count_bits)(words, numbers, count);
}

}  // namespace treadle::simd
#endif  // HWY_ONCE
