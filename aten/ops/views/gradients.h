// Helpers for formulas that undo broadcasting and conversions.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "autograd/graph/node.h"
#include "core/tensor/tensor.h"

namespace treadle::autograd {

// The gradient of a broadcast from `sizes`: sums the dimensions that were broadcast.
Tensor sum_to(const Tensor& grad, IntList sizes);
// The gradient of a conversion: from a complex gradient to a real value, the real part.
Tensor to_dtype(const Tensor& grad, ScalarType dtype);
// The gradient of an argument of a pointwise operator, with the argument's shape and dtype,
// whatever the formula gives.
Tensor reduce_to(const Tensor& grad, IntList sizes, ScalarType dtype);

// The gradient of copying to another shape, dtype or device.
Tensor copy_backward(const Tensor& grad, IntList sizes, ScalarType dtype, Device device);
Tensor permute_backward(const Tensor& grad, IntList dims);

}  // namespace treadle::autograd
