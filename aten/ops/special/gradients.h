// Helpers for formulas of special functions: derivatives that are a quotient with a limit at zero.
// They are composed of operators, so they can be differentiated again.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// The derivative of a function at `self`, where its value is `result`.
Tensor i1_slope(const Tensor& self, const Tensor& result);
Tensor i1e_slope(const Tensor& self, const Tensor& result);
Tensor bessel_j1_slope(const Tensor& self, const Tensor& result);
Tensor spherical_bessel_j0_slope(const Tensor& self, const Tensor& result);
Tensor sinc_slope(const Tensor& self, const Tensor& result);

// The derivative of self * log(other) and self * log1p(other) by self: 0 where self is 0 and the
// logarithm is not finite.
Tensor xlogy_backward_self(const Tensor& grad, const Tensor& self, const Scalar& other);
Tensor xlog1py_backward_self(const Tensor& grad, const Tensor& self, const Scalar& other);

// The derivative of points of the Dirichlet distribution by their concentrations.
Tensor sample_dirichlet_backward(const Tensor& grad, const Tensor& concentration,
                                 const Tensor& result);

// The derivative of the angle of a number: the direction across it, divided by its magnitude. Real
// numbers have none.
Tensor angle_backward(const Tensor& grad, const Tensor& self);

}  // namespace treadle::autograd
