// Depthwise convolutions of images, whose groups have one input channel each. Their work is all
// reads and writes, without a matrix product. T is float, double, Half or BFloat16.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/ops/convolution/cuda/convolution_plan.h"

namespace treadle::cuda {

// Whether the kernels here support a convolution.
bool is_depthwise(const ConvolutionGeometry& geometry);

// Computes one operand from the others. All are contiguous. bias, for y only, may be null.
template <class T>
void depthwise(const ConvolutionGeometry& geometry, ConvolutionPart part, const Tensor& x,
               const Tensor& w, const Tensor& y, const Tensor& bias);

}  // namespace treadle::cuda
