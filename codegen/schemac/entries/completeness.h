// Refuses an entry whose contract leaves something open: documentation, dtypes, or an argument that
// nothing limits.
//
//   - func: topk(Tensor self, int k, int dim=-1) -> (Tensor values, Tensor indices)
//     shape: topk(self, k, dim)       limits self, k and dim
//     dtypes: {CPU: real}
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/schemac/diagnostics.h"
#include "codegen/schemac/model.h"

namespace treadle::schemac {

// The limits of an argument depend on the operator's kind:
//
//   pointwise  tensors broadcast; a number is an element's value where the expression uses it
//   reduce     tensor, dimensions and dtype are those of every reduction
//   view       the view's function is its shape rule, and is given every argument
//   composite  the contracts of the operators it is made of
//   others     `shape` and `check`, which name it; `dtypes` limits the tensor it is about
//
// In every kind a `str` has a `check` with the texts it may be. Flags, dtypes, devices, layouts,
// memory formats and generators are limited by their types.
void check_completeness(const Operator& op, Diagnostics& diagnostics);

}  // namespace treadle::schemac
