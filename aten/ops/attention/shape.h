// Shapes of attention: query (..., L, E), key (..., S, E), value (..., S, Ev), mask (..., L, S),
// all with the same leading dimensions.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_attention.h"
#include "aten/ops/_attention_backward.h"

namespace treadle::shape {

// -> output (..., L, Ev), and the logarithm of each row's sum of exponentials (..., L).
std::array<TensorSpec, 2> attention(const char* op, const Tensor& query, const Tensor& key,
                                    const Tensor& value, const Tensor& mask);
// -> gradients of query, key and value.
std::array<TensorSpec, 3> attention_grad(const char* op, const Tensor& grad, const Tensor& query,
                                         const Tensor& key, const Tensor& value, const Tensor& mask,
                                         const Tensor& output, const Tensor& logsumexp);

}  // namespace treadle::shape
