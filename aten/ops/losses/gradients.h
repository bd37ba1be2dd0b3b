// Helpers for the formulas of losses.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// Gradients of binary_cross_entropy, finite at probabilities of 0 and 1: the slope (p - y) / (p (1
// - p)) is taken with a denominator of at least 1e-12, the logarithms stay above -100.
Tensor binary_cross_entropy_grad_input(const Tensor& grad, const Tensor& self, const Tensor& target,
                                       const Tensor& weight, int64_t reduction);
Tensor binary_cross_entropy_grad_target(const Tensor& grad, const Tensor& self,
                                        const Tensor& weight, int64_t reduction);
Tensor binary_cross_entropy_grad_weight(const Tensor& grad, const Tensor& self,
                                        const Tensor& target, int64_t reduction);

}  // namespace treadle::autograd
