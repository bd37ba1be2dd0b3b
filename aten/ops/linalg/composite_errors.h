// The errors of composites of linear algebra when LAPACK's `info` reports a failed matrix.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::composite {

// LinAlgError "linalg.inv: expected invertible matrices, got a zero pivot 2 at batch index (0, 1)"
// for the first nonzero entry of `info`; `what` is the text from "expected" to the number. It does
// nothing on the meta device, which has no info.
void require_success(const char* op, const char* what, const Tensor& info);

}  // namespace treadle::composite
