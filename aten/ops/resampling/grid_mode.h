// The modes by which grid_sampler reads an image between its pixels and outside it, with their
// numbers in its schema.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle {

struct GridMode {
  enum Interpolation : int64_t { kLinear = 0, kNearest = 1, kCubic = 2 };
  enum Padding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

  int64_t interpolation, padding;
  bool align_corners;  // whether -1 and 1 are the centres of the outer pixels, or their outer edges
};

}  // namespace treadle
