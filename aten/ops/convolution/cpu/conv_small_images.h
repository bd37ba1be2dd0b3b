// Convolution of small images with a large weight, as one matrix product for many images.
//
// oneDNN brings the weight into an order of its own in each call. With few positions that takes
// longer than what the order saves, while a product of matrices reads the weight as it is.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/ops/convolution/cpu/conv_geometry.h"

namespace treadle::cpu {

// Whether the convolution is one of those. The batch does not matter, so that an image has the same
// bits in any batch.
bool is_of_small_images(const ConvGeometry& g);

// `bias` may be null. All tensors are contiguous.
void conv_forward_small_images(const ConvGeometry& g, const float* input, const float* weight,
                               const float* bias, float* output);

}  // namespace treadle::cpu
