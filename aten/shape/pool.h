// Shapes of two-dimensional pooling.
#pragma once

#include "aten/structured.h"

namespace treadle::shape {

// input (N, C, H, W) or (C, H, W). An empty stride means stride = kernel_size. Padding is at most
// half the kernel.
std::array<TensorSpec, 2> max_pool(const char* op, const Tensor& self, IntList kernel_size,
                                   IntList stride, IntList padding, IntList dilation,
                                   bool ceil_mode);
TensorSpec avg_pool(const char* op, const Tensor& self, IntList kernel_size, IntList stride,
                    IntList padding, bool ceil_mode);
// Gradients: the shape of the pooling's input, after checking that `grad` has the shape of its
// output.
TensorSpec max_pool_grad(const char* op, const Tensor& grad, const Tensor& indices,
                         IntList input_size);
TensorSpec max_pool_double_grad(const char* op, const Tensor& grad, const Tensor& indices);
TensorSpec avg_pool_grad(const char* op, const Tensor& grad, IntList input_size,
                         IntList kernel_size, IntList stride, IntList padding, bool ceil_mode);

}  // namespace treadle::shape
