// Shapes of convolution over one, two or three dimensions, of its transpose, and of the weight's
// gradient.
//
//   convolution   out = floor((in + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1
//   transposed    out = (in - 1) * stride - 2 * padding + dilation * (kernel - 1)
//                       + output_padding + 1
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_convolution_grad_weight.h"
#include "aten/ops/convolution.h"

namespace treadle::shape {

// input ([N,] C, spatial...); weight (O, C / groups, kernel...), transposed (C, O / groups,
// kernel...); bias (O) -> ([N,] O, spatial...). A list has one entry for each spatial dimension, or
// one entry for all of them.
TensorSpec convolution(const char* op, const Tensor& input, const Tensor& weight,
                       const Tensor& bias, IntList stride, IntList padding, IntList dilation,
                       bool transposed, IntList output_padding, int64_t groups);
// The gradient with respect to a weight of shape `weight_size`. `grad` may be shorter than the
// convolution of `input`. It then covers the first positions.
TensorSpec convolution_grad_weight(const char* op, const Tensor& grad, const Tensor& input,
                                   IntList weight_size, IntList stride, IntList padding,
                                   IntList dilation, int64_t groups);

// Length of a convolution along one dimension; RuntimeError when the kernel does not fit.
int64_t convolved_length(const char* op, int64_t input, int64_t kernel, int64_t stride,
                         int64_t padding, int64_t dilation);

// Entry `d` of a list with one entry for each dimension, or one for all.
inline int64_t entry_of(IntList list, size_t d) { return list[list.size() == 1 ? 0 : d]; }

// The memory format of a convolution over `spatial` dimensions that reads these images, or an image
// and a weight: channels are innermost if they are in either. Without a batch, contiguous.
MemoryFormat convolution_format(const Tensor& image, const Tensor& other, size_t spatial);

}  // namespace treadle::shape
