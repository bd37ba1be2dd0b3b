// Shapes of the negative log likelihood and its gradient.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/nll_loss_backward.h"
#include "aten/ops/nll_loss_forward.h"

namespace treadle::shape {

// self (N, C), target (N) of int64, weight (C) -> the loss, () or (N) by `reduction`, and the total
// weight ().
std::array<TensorSpec, 2> nll_loss(const char* op, const Tensor& self, const Tensor& target,
                                   const Tensor& weight, int64_t reduction);
TensorSpec nll_loss_grad(const char* op, const Tensor& grad, const Tensor& self,
                         const Tensor& target, const Tensor& weight, int64_t reduction,
                         const Tensor& total_weight);

}  // namespace treadle::shape
