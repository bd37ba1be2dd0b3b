// Shapes of embedding_bag.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_embedding_bag.h"

namespace treadle::shape {

// -> output (bags, D), the bag of each index, the indices that count in each bag, and for the
// maximum (mode 2) the row each output element came from.
std::array<TensorSpec, 4> embedding_bag(const char* op, const Tensor& weight, const Tensor& indices,
                                        const Tensor& offsets, int64_t mode,
                                        const Tensor& per_sample_weights, bool include_last_offset);

}  // namespace treadle::shape
