// An alias is another tensor over the same elements, without the history.
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// Of a tensor whose class takes over operators, it is what the class makes of detach(): a tensor of
// that class, as a plain one would have no memory, or would be of another meaning.
Tensor alias_without_history(const Tensor& t);

}  // namespace treadle::autograd
