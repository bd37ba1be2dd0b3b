// Keys' cubic kernel, which interpolates images from 4 neighbours in each dimension.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace treadle {

// The weight of a neighbour at the distance x >= 0; `a` is the slope at the distance 1. NaN stays
// NaN.
template <class C>
constexpr C cubic_weight(C x, C a) {
  const C near = ((a + 2) * x - (a + 3)) * x * x + 1, far = ((x - 5) * x + 8) * x * a - 4 * a;
  const C far_or_none = x >= 2 ? C(0) : far;
  return x <= 1 ? near : far_or_none;
}

}  // namespace treadle
