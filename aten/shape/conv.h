// Shapes of two-dimensional convolution and of its two gradients.
//
// output = floor((input + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1, in each spatial
// dimension.
#pragma once

#include "aten/structured.h"

namespace treadle::shape {

// input (N, C, H, W) or (C, H, W); weight (O, C / groups, kH, kW); bias (O) -> (N, O, H', W') or
// (O, H', W').
TensorSpec conv(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                IntList stride, IntList padding, IntList dilation, int64_t groups);
// The gradient with respect to an input of shape `input_size`.
TensorSpec conv_grad_input(const char* op, const Tensor& grad, const Tensor& weight,
                           IntList input_size, IntList stride, IntList padding, IntList dilation,
                           int64_t groups);
// The gradient with respect to a weight of shape `weight_size`.
TensorSpec conv_grad_weight(const char* op, const Tensor& grad, const Tensor& input,
                            IntList weight_size, IntList stride, IntList padding, IntList dilation,
                            int64_t groups);
// Output length along one dimension; RuntimeError when the kernel does not fit.
int64_t conv_length(const char* op, int64_t input, int64_t kernel, int64_t stride, int64_t padding,
                    int64_t dilation);

}  // namespace treadle::shape
