// Convolutions of integers, which wrap like their products and sums.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::composite {

// Like `convolution`, for tensors of an integer dtype.
Tensor integer_convolution(const char* op, const Tensor& input, const Tensor& weight,
                           const Tensor& bias, IntList stride, IntList padding, IntList dilation,
                           bool transposed, IntList output_padding, int64_t groups);

}  // namespace treadle::composite
