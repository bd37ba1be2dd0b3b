// Derivatives of group and root-mean-square normalisation. While gradients are recorded, they are
// composed of differentiable operators. Otherwise one kernel computes them.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <tuple>

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// Gradients of input, weight and bias, as `mask` requests, from those of the output, the mean and
// the reciprocal standard deviation.
std::tuple<Tensor, Tensor, Tensor> group_norm_backward(TensorList grads, const Tensor& input,
                                                       const Tensor& weight, const Tensor& mean,
                                                       const Tensor& rstd, int64_t samples,
                                                       int64_t channels, int64_t plane,
                                                       int64_t groups, double eps,
                                                       std::array<bool, 3> mask);
// Gradients of input and weight.
std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad, const Tensor& input,
                                             IntList normalized_shape, const Tensor& rstd,
                                             const Tensor& weight, double eps,
                                             std::array<bool, 2> mask);

}  // namespace treadle::autograd
