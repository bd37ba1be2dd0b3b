// Derivatives of batch and layer normalisation.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <tuple>

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// Gradients of input, weight and bias, as `mask` requests. While gradients are recorded, they are
// composed of differentiable operators. Otherwise one kernel computes them.
std::tuple<Tensor, Tensor, Tensor> batch_norm_backward(const Tensor& grad, const Tensor& input,
                                                       const Tensor& weight, const Tensor& mean,
                                                       const Tensor& var, double eps,
                                                       std::array<bool, 3> mask);
std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor& grad, const Tensor& input,
                                                       IntList normalized_shape, const Tensor& mean,
                                                       const Tensor& rstd, const Tensor& weight,
                                                       double eps, std::array<bool, 3> mask);

}  // namespace treadle::autograd
