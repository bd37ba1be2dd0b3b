// The commonest shape rule: one output like an argument.
#pragma once

#include "aten/structured.h"

namespace treadle::shape {

// The shape, dtype and device of `self`.
TensorSpec same_as(const char* op, const Tensor& self);

}  // namespace treadle::shape
