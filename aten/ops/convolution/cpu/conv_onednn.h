// Float convolution and its gradients on oneDNN.
//
// Primitives are made once for each geometry and kept. A batch is computed in the pieces that its
// geometry says, each by one thread; what the pieces share, the weights and the sum of their
// gradients, is brought from one layout to another once for all of them.
#pragma once

#include "aten/ops/convolution/cpu/conv_geometry.h"

namespace treadle::cpu {

// Each returns false, with nothing written, for a geometry that oneDNN has no fast kernel for.
// `bias` may be null.
bool conv_forward_onednn(const ConvGeometry& g, const float* input, const float* weight,
                         const float* bias, float* output);
bool conv_grad_input_onednn(const ConvGeometry& g, const float* grad, const float* weight,
                            float* grad_input);
bool conv_grad_weight_onednn(const ConvGeometry& g, const float* grad, const float* input,
                             float* grad_weight);

}  // namespace treadle::cpu
