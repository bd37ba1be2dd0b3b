// Factors of tensors: alpha, beta.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/error.h"
#include "core/base/scalar.h"

namespace treadle::cpu {

// The factor `name` as an element of the tensors that it multiplies. RuntimeError if it would lose
// its fraction, its imaginary part or its size.
template <class T>
T factor_as(const char* op, const char* name, const Scalar& factor) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    check<ErrorKind::Runtime>(factor.is_integral(), OpName(op), "expected an integer ", name,
                              " for tensors of dtype ", name_of(scalar_type_of<T>), ", got ", name,
                              " = ", factor);
  }
  return factor.checked_to<T>(op);
}

}  // namespace treadle::cpu
