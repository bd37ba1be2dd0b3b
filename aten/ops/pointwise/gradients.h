// Helpers for formulas of pointwise operators that need more than an expression: powers, whose
// derivative has gaps at zero, and directions of complex numbers. They are composed of operators,
// so they can be differentiated again.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// grad / conj(divisor)
Tensor div_by_scalar(const Tensor& grad, const Scalar& divisor);

// The gradients of base ** exponent: 0 for the base if the exponent is 0, and for the exponent if
// the base is 0 and the power is not infinite.
Tensor pow_scalar_backward(const Tensor& grad, const Tensor& base, const Scalar& exponent);
Tensor pow_backward_base(const Tensor& grad, const Tensor& base, const Tensor& exponent);
Tensor pow_backward_exponent(const Tensor& grad, const Tensor& base, const Tensor& exponent,
                             const Tensor& result);
Tensor scalar_pow_backward(const Tensor& grad, const Scalar& base, const Tensor& exponent,
                           const Tensor& result);

// The gradient of logit: 0 where `eps` clamped the argument, and NaN where the value is NaN.
Tensor logit_backward(const Tensor& grad, const Tensor& self, std::optional<double> eps);

// The gradient of sgn: 0 for real numbers; for complex ones the component of the gradient across
// the direction, divided by the magnitude.
Tensor sgn_backward(const Tensor& grad, const Tensor& self, const Tensor& result);

Tensor gelu_tanh_backward(const Tensor& grad, const Tensor& self);

}  // namespace treadle::autograd
