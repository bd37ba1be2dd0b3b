// The lists of an optimiser's step: parameters, their gradients, and the state of each.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/ops/_fused_adagrad_.h"
#include "aten/ops/_fused_adam_.h"
#include "aten/ops/_fused_sgd_.h"
#include "core/tensor/tensor.h"

namespace treadle::shape {

// state_steps holds one real number for each parameter, of any dtype. grad_scale and found_inf,
// where given, are one floating number each. With a grad_scale the gradients are written too.
void adam_lists(const char* op, TensorList self, TensorList grads, TensorList exp_avgs,
                TensorList exp_avg_sqs, TensorList max_exp_avg_sqs, TensorList state_steps,
                bool amsgrad, const Tensor& grad_scale, const Tensor& found_inf);
void sgd_lists(const char* op, TensorList self, TensorList grads, TensorList momentum_buffer_list,
               double momentum, const Tensor& grad_scale, const Tensor& found_inf);
void adagrad_lists(const char* op, TensorList self, TensorList grads, TensorList state_sums,
                   TensorList state_steps, const Tensor& grad_scale, const Tensor& found_inf);

}  // namespace treadle::shape
