// The errors of composites of linear algebra when LAPACK's `info` reports a failed matrix.
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::composite {

// LinAlgError "linalg.inv: expected invertible matrices, got a zero pivot 2 at batch index (0, 1)"
// for the first entry of `info` that is not 0; `what` is the text from "expected" to the number.
// Nothing on the meta device, where there is no info.
void require_success(const char* op, const char* what, const Tensor& info);

}  // namespace treadle::composite
