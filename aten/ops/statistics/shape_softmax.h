// Shape rules of softmax and log_softmax and of their derivatives.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_log_softmax.h"
#include "aten/ops/_log_softmax_backward_data.h"

namespace treadle::shape {

TensorSpec softmax(const char* op, const Tensor& self, int64_t dim, bool half_to_float);
TensorSpec softmax_backward(const char* op, const Tensor& grad_output, const Tensor& output,
                            int64_t dim, ScalarType input_dtype);

}  // namespace treadle::shape
