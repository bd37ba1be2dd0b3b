// The scale and the zero point that fit what a tensor holds.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::quantized {

struct Parameters {
  double scale;
  int64_t zero_point;
};
// With which the real numbers from `least` to `greatest`, and 0, become whole numbers from `low` to
// `high`, 0 exactly.
Parameters fitting(double least, double greatest, int64_t low, int64_t high);
// The same for the elements of a tensor. RuntimeError if some are infinite or NaN.
Parameters chosen_parameters(const char* op, const Tensor& t, int64_t low, int64_t high);

}  // namespace treadle::quantized
