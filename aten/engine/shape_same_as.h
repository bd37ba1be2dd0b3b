// The most common shape rules: one output with the shape of an argument, or one for each argument.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_attention_dropout_mask.h"
#include "aten/ops/_dirichlet_grad.h"
#include "aten/ops/_standard_gamma_grad.h"

namespace treadle::shape {

// The shape, dtype and device of `self`.
TensorSpec same_as(const char* op, const Tensor& self);
// Those of the arguments, which share them.
TensorSpec same_as_each(const char* op, const Tensor& a, const Tensor& b);
TensorSpec same_as_each(const char* op, const Tensor& a, const Tensor& b, const Tensor& c);

}  // namespace treadle::shape
