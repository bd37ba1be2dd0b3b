// Helpers for the formulas of matrix products.
#pragma once

#include "core/tensor.h"

namespace treadle::autograd {

// Conjugate transpose of the last two dimensions.
Tensor adjoint(const Tensor& t);
// grad * conj(factor); the gradient itself for a factor of 1.
Tensor scaled(const Tensor& grad, const Scalar& factor);
inline Tensor none_tensor() { return {}; }

}  // namespace treadle::autograd
