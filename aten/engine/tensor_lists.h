// Checks of the tensor lists that an operator processes together, before the first write.
//
//   require_alike("_fused_sgd_", {{"self", self}, {"grads", grads}});
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle {

struct NamedList {
  const char* name;
  TensorList list;
};

// RuntimeError for an empty list, whose first tensor would say what kernel serves the call.
void require_tensors(const char* op, const char* name, TensorList list);
// RuntimeError unless all tensors of the list have the dtype and device of its first.
void require_uniform(const char* op, const char* name, TensorList list);
// The first list is uniform, and each other list has as many tensors as it, of the same shape,
// dtype and device place by place; else a RuntimeError.
void require_alike(const char* op, ArrayRef<NamedList> lists);
// RuntimeError unless every tensor can be the target of a write.
void require_writable(const char* op, TensorList list);

// Notes that each tensor was written.
void bump_versions(TensorList list);

}  // namespace treadle
