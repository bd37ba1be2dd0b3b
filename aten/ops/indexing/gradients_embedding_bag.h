// Derivatives of embedding_bag, of differentiable operators.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

Tensor embedding_bag_grad_weight(const Tensor& grad, int64_t rows, const Tensor& indices,
                                 const Tensor& bag_of, const Tensor& bag_size,
                                 const Tensor& max_indices, bool scale_grad_by_freq, int64_t mode,
                                 bool sparse, const Tensor& per_sample_weights,
                                 int64_t padding_idx);
Tensor embedding_bag_grad_factors(const Tensor& grad, const Tensor& weight, const Tensor& indices,
                                  const Tensor& bag_of, int64_t padding_idx);

}  // namespace treadle::autograd
