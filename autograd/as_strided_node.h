// The node of every view. It knows how one of two tensors over the same memory lies in the other.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "autograd/graph/node.h"

namespace treadle::autograd {

// A node that takes the gradient of `view` to `base`. The history continues from `base`.
NodePtr as_strided_node(const Tensor& base, const Tensor& view);

}  // namespace treadle::autograd
