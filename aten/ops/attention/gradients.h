// Derivatives of attention.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <tuple>

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// Gradients of query, key and value. While gradients are recorded, they are composed of
// differentiable operators, through the whole matrix of probabilities. Otherwise a kernel computes
// them in blocks.
std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& grad, const Tensor& query,
                                                      const Tensor& key, const Tensor& value,
                                                      const Tensor& mask, const Tensor& output,
                                                      const Tensor& logsumexp, double dropout_p,
                                                      bool is_causal, double scale, int64_t seed);

}  // namespace treadle::autograd
