// renamed(): runs a part of a composite. An error of the part becomes one of the composite.
//
//   return renamed("conv1d", "convolution", [&] { return aten::convolution(...); });
//   // conv1d: expected input with 4 channels (...), got 3
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/base/error.h"

namespace treadle {

template <class F>
decltype(auto) renamed(std::string_view op, std::string_view part, F&& f) {
  try {
    return f();
  } catch (Error& error) {
    if (error.op() == part) error.set_op(OpName(op));
    throw;
  }
}

}  // namespace treadle
