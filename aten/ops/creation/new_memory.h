// New memory with a conspicuous value, where the program asks for it (MathSwitches).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/math_switches.h"
#include "core/tensor/tensor.h"

namespace treadle::composite {

inline bool fills_new_memory() {
  return math_switches().fills_new_memory.load(std::memory_order_relaxed);
}

// Writes NaN, or the largest value of an integer dtype, to the storage of `t` from this byte on.
void fill_new_memory(const Tensor& t, size_t from = 0);

}  // namespace treadle::composite
