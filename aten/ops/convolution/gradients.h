// Helpers for the formulas of convolution. Convolution is linear in the input and in the weight, so
// its gradients are again convolutions and weight gradients.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// The gradient of `convolution` with respect to an input of this geometry.
Tensor convolution_grad_input(const Tensor& grad, const Tensor& weight, IntList input_size,
                              IntList input_strides, IntList stride, IntList padding,
                              IntList dilation, bool transposed, int64_t groups);
// The gradient of `convolution` with respect to a weight of this geometry.
Tensor convolution_grad_weight(const Tensor& grad, const Tensor& input, IntList weight_size,
                               IntList weight_strides, IntList stride, IntList padding,
                               IntList dilation, bool transposed, int64_t groups);
// The sum of an output gradient ([N,] O, spatial...) over all dimensions but the channels.
Tensor convolution_grad_bias(const Tensor& grad, int64_t weight_dim);

// Gradients of `_convolution_grad_weight` with respect to its two tensors.
Tensor convolution_grad_weight_grad(const Tensor& grad, const Tensor& input, IntList grad_size,
                                    IntList stride, IntList padding, IntList dilation,
                                    int64_t groups);
Tensor convolution_grad_weight_input(const Tensor& grad, const Tensor& output_grad,
                                     IntList input_size, IntList stride, IntList padding,
                                     IntList dilation, int64_t groups);

}  // namespace treadle::autograd
