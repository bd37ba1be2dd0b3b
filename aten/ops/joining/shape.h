// Shape rules of operators that join tensors: cat and stack.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_cat.h"
#include "aten/ops/_stack.h"

namespace treadle::shape {

// The dtype is the promotion of all tensors' dtypes. A tensor of shape (0,) fits anywhere and adds
// nothing.
TensorSpec cat(const char* op, TensorList tensors, int64_t dim);
TensorSpec stack(const char* op, TensorList tensors, int64_t dim);

// Whether cat skips `t`.
inline bool cat_skips(const Tensor& t) { return t.dim() == 1 && t.sizes()[0] == 0; }

}  // namespace treadle::shape
