// An alias is another tensor over the same elements, without the history.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// The alias of a tensor whose class takes over operators is the class's result of detach(): a
// tensor of that class. A plain alias would have no memory, or another meaning.
Tensor alias_without_history(const Tensor& t);

}  // namespace treadle::autograd
