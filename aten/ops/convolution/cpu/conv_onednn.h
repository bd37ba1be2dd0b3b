// Convolution and its gradients on oneDNN: of float, and of bfloat16 where the processor multiplies
// that.
//
// Primitives are made once for each geometry and cached. A batch is computed in the pieces of its
// geometry, each by one thread. The shared operands of the pieces, the weights and the sum of their
// gradients, change layout once for all pieces.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/ops/convolution/cpu/conv_geometry.h"

namespace treadle::cpu {

// Each returns false, with nothing written, for a geometry without a fast oneDNN kernel. Images and
// weights are of the type of the geometry. `bias` may be null.
bool conv_forward_onednn(const ConvGeometry& g, const void* input, const void* weight,
                         const float* bias, void* output);
bool conv_grad_input_onednn(const ConvGeometry& g, const void* grad, const void* weight,
                            void* grad_input);
bool conv_grad_weight_onednn(const ConvGeometry& g, const void* grad, const void* input,
                             float* grad_weight);

}  // namespace treadle::cpu
