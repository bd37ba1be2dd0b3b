// The noise of dropout. It is real, because a complex number is kept or dropped as a whole.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace treadle::composite {

// The dtype of the noise for `input`; RuntimeError if it holds integers.
inline ScalarType noise_dtype(const char* op, const Tensor& input) {
  check<ErrorKind::Runtime>(input.is_floating_point() || input.is_complex(), OpName(op),
                            "expected input of a floating or complex dtype, got ", input.dtype());
  return to_real(input.dtype());
}

}  // namespace treadle::composite
