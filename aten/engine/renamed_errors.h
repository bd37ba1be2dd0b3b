// renamed(): runs a part of a composite so that its errors carry the composite's name.
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
  } catch (const Error& error) {
    const std::string_view text = error.what();
    if (!text.starts_with(part) || !text.substr(part.size()).starts_with(": ")) throw;
    throw Error(error.kind(), str(op, text.substr(part.size())));
  }
}

}  // namespace treadle
