// Shape rule of var and std.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/std.h"

namespace treadle::shape {

// The result is real. `dims` absent or empty: all.
TensorSpec variance(const char* op, const Tensor& self, OptionalIntList dims, bool keepdim);

}  // namespace treadle::shape
