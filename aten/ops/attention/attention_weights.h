// The whole matrix of attention's probabilities, from differentiable operators. It serves gradients
// of gradients, and a mask of that size that takes a gradient itself.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::composite {

// softmax(scale * query @ key^T, masked), with 0 in rows whose keys are all masked; (..., L, S).
Tensor attention_weights(const Tensor& query, const Tensor& key, const Tensor& mask, bool is_causal,
                         double scale);

}  // namespace treadle::composite
