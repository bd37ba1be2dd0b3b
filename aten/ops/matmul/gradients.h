// Helpers for the formulas of matrix products.
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// Conjugate transpose of the last two dimensions.
Tensor adjoint(const Tensor& t);
// The product of two matrices, with the order of `strides` in memory: rows one after another, or,
// as in the transposed view of a weight, columns. So the gradient of the weight lies as the weight
// does.
Tensor mm_laid_out(const Tensor& a, const Tensor& b, IntList strides);
// grad * conj(factor); the gradient itself for a factor of 1.
Tensor scaled(const Tensor& grad, const Scalar& factor);
inline Tensor none_tensor() { return {}; }

}  // namespace treadle::autograd
