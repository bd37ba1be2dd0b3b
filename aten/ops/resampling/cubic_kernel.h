// Keys' cubic kernel, which interpolates images from 4 neighbours in each dimension.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace treadle {

// The weight of a neighbour at the distance x >= 0; `a` is the slope at the distance 1. NaN stays
// NaN.
template <class C>
constexpr C cubic_weight(C x, C a) {
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x >= 2) return 0;
  return ((x - 5) * x + 8) * x * a - 4 * a;
}

}  // namespace treadle
