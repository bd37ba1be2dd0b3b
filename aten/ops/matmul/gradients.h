// Helpers for the formulas of matrix products.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// Conjugate transpose of the last two dimensions.
Tensor adjoint(const Tensor& t);
// The product of two matrices, in the memory order of `strides`: row-major, or column-major as in
// the transposed view of a weight. So the gradient of the weight has the weight's memory order.
Tensor mm_laid_out(const Tensor& a, const Tensor& b, IntList strides);
// grad * conj(factor); the gradient itself for a factor of 1, and without a product for -1.
Tensor scaled(const Tensor& grad, const Scalar& factor);
inline Tensor none_tensor() { return {}; }

}  // namespace treadle::autograd
