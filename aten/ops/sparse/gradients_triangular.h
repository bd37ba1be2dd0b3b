// Derivatives of systems with a triangular compressed matrix.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// Of X = inverse(A) @ B by B: the inverse of A's conjugate transpose, times the gradient.
Tensor csr_triangular_solve_grad_other(const Tensor& grad, const Tensor& values, const Tensor& crow,
                                       const Tensor& col, bool upper, bool unitriangular);
// By the entries of A: minus the gradient of B times the conjugate transpose of X, where the entry
// is read.
Tensor csr_triangular_solve_grad_values(const Tensor& grad, const Tensor& values,
                                        const Tensor& crow, const Tensor& col, const Tensor& result,
                                        bool upper, bool unitriangular);

}  // namespace treadle::autograd
