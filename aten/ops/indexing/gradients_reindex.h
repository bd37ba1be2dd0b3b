// Derivatives of reindex_reduce. That of reindex is reindex_reduce.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// A maximum that several elements are shares its gradient out among them.
Tensor reindex_reduce_backward(const Tensor& grad, const Tensor& self, std::string_view op,
                               IntList shape, std::string_view indices, const Tensor& result);

}  // namespace treadle::autograd
