// Normalisations of a 16-bit input with float32 weights, as in mixed precision. They are computed
// in float32, and the result has the input's dtype.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>

#include "core/tensor/tensor.h"

namespace treadle::composite {

inline bool mixes_precision(const Tensor& input, std::initializer_list<Tensor> weights) {
  const bool lower = input.dtype() == ScalarType::Float16 || input.dtype() == ScalarType::BFloat16;
  return lower && std::any_of(weights.begin(), weights.end(), [](const Tensor& weight) {
           return weight.defined() && weight.dtype() == ScalarType::Float32;
         });
}

}  // namespace treadle::composite
