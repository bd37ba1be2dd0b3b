// Shape rules of the kernels that quantize.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_dequantize_affine.h"
#include "aten/ops/_quantize_affine.h"

namespace treadle::shape {

// Whole numbers of `dtype` for the real numbers of `self`; `scale` and `zero_point` have an element
// for each place in dimension `axis`, or one where that is -1.
TensorSpec quantize_affine(const char* op, const Tensor& self, const Tensor& scale,
                           const Tensor& zero_point, int64_t axis, ScalarType dtype);
// The real numbers, in float32.
TensorSpec dequantize_affine(const char* op, const Tensor& self, const Tensor& scale,
                             const Tensor& zero_point, int64_t axis);

}  // namespace treadle::shape
