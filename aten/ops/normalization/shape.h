// Shapes of batch and layer normalisation.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_batch_norm_backward.h"
#include "aten/ops/_batch_norm_train.h"
#include "aten/ops/_layer_norm_backward.h"
#include "aten/ops/native_layer_norm.h"

namespace treadle::shape {

// input (N, C, ...); weight and bias (C) -> output like input, mean (C), biased variance (C).
std::array<TensorSpec, 3> batch_norm(const char* op, const Tensor& input, const Tensor& weight,
                                     const Tensor& bias);
// -> gradients of input, weight and bias.
std::array<TensorSpec, 3> batch_norm_grad(const char* op, const Tensor& grad, const Tensor& input,
                                          const Tensor& weight, const Tensor& mean,
                                          const Tensor& var);
// The last dimensions of input are normalized_shape -> output, mean and rstd over them (kept with
// size 1).
std::array<TensorSpec, 3> layer_norm(const char* op, const Tensor& input, IntList normalized_shape,
                                     const Tensor& weight, const Tensor& bias);
std::array<TensorSpec, 3> layer_norm_grad(const char* op, const Tensor& grad, const Tensor& input,
                                          IntList normalized_shape, const Tensor& weight,
                                          const Tensor& mean, const Tensor& rstd);

}  // namespace treadle::shape
