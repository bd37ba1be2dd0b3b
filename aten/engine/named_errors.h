// named(): runs code that knows no operator, and puts the operator's name in front of its errors.
//
//   return named("zeros", [&] { return empty_tensor(sizes, dtype, device); });
//   // zeros: expected sizes >= 0, ...
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/error.h"

namespace treadle {

template <class F>
decltype(auto) named(const char* op, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw Error(error.kind(), str(op, ": ", error.what()));
  }
}

}  // namespace treadle
