// The position of the greatest or least of consecutive elements, in vector code.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/base/half.h"

namespace treadle::simd {

// Types with vector code; others are searched by plain loops.
template <class T>
inline constexpr bool kHasExtremeSearch =
    std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, Half>;

// The position of the first of the greatest (or least) of values[0..count), count >= 1. The first
// NaN wins over all other elements, in both cases.
template <class T>
int64_t position_of_extreme(const T* values, int64_t count, bool greatest);

}  // namespace treadle::simd
