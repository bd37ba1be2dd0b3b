// Shapes of group and root-mean-square normalisation.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_group_norm_backward.h"
#include "aten/ops/_rms_norm.h"
#include "aten/ops/_rms_norm_backward.h"
#include "aten/ops/native_group_norm.h"

namespace treadle::shape {

// input of N samples with C channels of HxW elements -> output, and mean and rstd (N, groups).
std::array<TensorSpec, 3> group_norm(const char* op, const Tensor& input, const Tensor& weight,
                                     const Tensor& bias, int64_t samples, int64_t channels,
                                     int64_t plane, int64_t groups);
// -> gradients of input, weight and bias.
std::array<TensorSpec, 3> group_norm_grad(const char* op, const Tensor& grad, const Tensor& input,
                                          const Tensor& weight, const Tensor& mean,
                                          const Tensor& rstd, int64_t samples, int64_t channels,
                                          int64_t plane, int64_t groups);
// The last dimensions of input are normalized_shape -> output, and rstd over them (kept with size
// 1).
std::array<TensorSpec, 2> rms_norm(const char* op, const Tensor& input, IntList normalized_shape,
                                   const Tensor& weight);
// -> gradients of input and weight.
std::array<TensorSpec, 2> rms_norm_grad(const char* op, const Tensor& grad, const Tensor& input,
                                        IntList normalized_shape, const Tensor& rstd,
                                        const Tensor& weight);

}  // namespace treadle::shape
