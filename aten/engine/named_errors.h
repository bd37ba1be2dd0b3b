// named(): runs code that knows no operator. An error in it becomes one of the operator.
//
//   return named("zeros", [&] { return empty_tensor(sizes, dtype, device); });
//   // zeros: expected sizes >= 0, ...
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/base/error.h"

namespace treadle {

template <class F>
decltype(auto) named(std::string_view op, F&& f) {
  try {
    return f();
  } catch (Error& error) {
    if (error.op().empty()) error.set_op(OpName(op));
    throw;
  }
}

}  // namespace treadle
