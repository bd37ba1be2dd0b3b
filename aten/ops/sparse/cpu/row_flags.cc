// A set of columns as flags, compiled once per target.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/sparse/cpu/row_flags.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <type_traits>

#include "aten/ops/sparse/cpu/row_flags.h"
#include "aten/scalar/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// A bit for each of the flags.
HWY_INLINE uint64_t bits_of(const uint8_t* flags) {
  const hn::CappedTag<uint8_t, kFlags> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  using Part =
      std::conditional_t<kLanes == 64, uint64_t,
                         std::conditional_t<kLanes == 32, uint32_t,
                                            std::conditional_t<kLanes == 16, uint16_t, uint8_t>>>;
  uint64_t bits = 0;
  for (size_t k = 0; k < kFlags; k += kLanes) {
    Part part = 0;
    hn::StoreMaskBits(d, hn::Ne(hn::LoadU(d, flags + k), hn::Zero(d)),
                      reinterpret_cast<uint8_t*>(&part));
    bits |= static_cast<uint64_t>(part) << k;
  }
  return bits;
}

HWY_INLINE void clear(uint8_t* flags) {
  const hn::CappedTag<uint8_t, kFlags> d;
  for (size_t k = 0; k < kFlags; k += hn::MaxLanes(d)) hn::StoreU(hn::Zero(d), d, flags + k);
}

// Writes the numbers of the bits, plus `from`. How many there are is seldom foreseen by a
// processor, so that a few are written at once.
HWY_INLINE void write_few(uint64_t bits, uint32_t from, uint32_t* to) {
  do {
    for (int k = 0; k < 3; ++k) {
      // The number of the first bit, or any where none is left.
      to[k] = from + static_cast<uint32_t>(__builtin_ctzll(bits | uint64_t{1} << 63));
      bits &= bits - 1;
    }
    to += 3;
  } while (bits != 0);
}

HWY_INLINE void write_many(uint64_t bits, uint32_t from, uint32_t* to) {
  const hn::CappedTag<uint32_t, 16> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  if constexpr (kLanes == 16) {
    auto numbers = hn::Iota(d, from);
    for (size_t k = 0; k < kFlags; k += kLanes) {
      const auto some = static_cast<uint16_t>(bits >> k);
      const auto chosen = hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&some));
      hn::StoreU(hn::Compress(numbers, chosen), d, to);
      to += __builtin_popcount(some);
      numbers = hn::Add(numbers, hn::Set(d, kLanes));
    }
  } else {
    write_few(bits, from, to);
  }
}

uint32_t* take_columns(uint8_t* flags, uint32_t first, uint32_t last, uint32_t* columns) {
  for (uint32_t group = first; group < last; ++group) {
    uint8_t* const some = flags + static_cast<size_t>(group) * kFlags;
    const uint64_t bits = bits_of(some);
    clear(some);
    const int count = __builtin_popcountll(bits);
    if (count <= 6)
      write_few(bits, group * kFlags, columns);
    else
      write_many(bits, group * kFlags, columns);
    columns += count;
  }
  return columns;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(take_columns);

uint32_t* take_columns(uint8_t* flags, uint32_t first, uint32_t last, uint32_t* columns) {
  return HWY_DYNAMIC_DISPATCH(take_columns)(flags, first, last, columns);
}

}  // namespace treadle::simd
#endif  // HWY_ONCE
