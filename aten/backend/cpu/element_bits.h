// Elements as bits. Operators that only move elements are compiled for each element size, not for
// each dtype.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace treadle::cpu {

// may_alias: the memory holds numbers of another type.
template <size_t N>
struct ElementBits;
template <>
struct [[gnu::may_alias]] ElementBits<1> {
  uint8_t bits;
};
template <>
struct [[gnu::may_alias]] ElementBits<2> {
  uint16_t bits;
};
template <>
struct [[gnu::may_alias]] ElementBits<4> {
  uint32_t bits;
};
template <>
struct [[gnu::may_alias]] ElementBits<8> {
  uint64_t bits;
};
template <>
struct [[gnu::may_alias]] ElementBits<16> {
  uint64_t bits[2];
};

template <class T>
using bits_of = ElementBits<sizeof(T)>;

}  // namespace treadle::cpu
