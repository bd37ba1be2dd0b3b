// Shapes of pooling over the last one, two or three dimensions of an input ([N,] C, ...).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_adaptive_avg_pool_backward.h"
#include "aten/ops/_avg_pool_backward.h"
#include "aten/ops/_max_pool_backward.h"
#include "aten/ops/_max_pool_gather.h"
#include "aten/ops/_max_unpool.h"
#include "aten/ops/adaptive_avg_pool1d.h"
#include "aten/ops/adaptive_max_pool1d.h"
#include "aten/ops/avg_pool1d.h"
#include "aten/ops/max_pool1d_with_indices.h"

namespace treadle::shape {

// Windows of `kernel_size`, which has an entry for each pooled dimension. An empty stride means
// stride = kernel_size. Padding is at most half the kernel.
std::array<TensorSpec, 2> max_pool(const char* op, const Tensor& self, IntList kernel_size,
                                   IntList stride, IntList padding, IntList dilation,
                                   bool ceil_mode);
TensorSpec avg_pool(const char* op, const Tensor& self, IntList kernel_size, IntList stride,
                    IntList padding, bool ceil_mode);
// `output_size` windows that cover the input evenly.
TensorSpec adaptive_pool(const char* op, const Tensor& self, IntList output_size);
std::array<TensorSpec, 2> adaptive_max_pool(const char* op, const Tensor& self,
                                            IntList output_size);
// Values at the positions `indices` of a larger tensor, of size `output_size` in the pooled
// dimensions.
TensorSpec max_unpool(const char* op, const Tensor& self, const Tensor& indices,
                      IntList output_size);

// Gradients: the shape of the pooling's input, after checking that `grad` has the shape of its
// output.
TensorSpec max_pool_grad(const char* op, const Tensor& grad, const Tensor& indices,
                         IntList input_size, int64_t spatial);
TensorSpec max_pool_gather(const char* op, const Tensor& grad, const Tensor& indices,
                           int64_t spatial);
TensorSpec avg_pool_grad(const char* op, const Tensor& grad, IntList input_size,
                         IntList kernel_size, IntList stride, IntList padding, bool ceil_mode);
TensorSpec adaptive_pool_grad(const char* op, const Tensor& grad, IntList input_size,
                              int64_t spatial);

}  // namespace treadle::shape
