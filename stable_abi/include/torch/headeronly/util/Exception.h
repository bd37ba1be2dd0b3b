// STD_TORCH_CHECK: a condition of an extension. Where it does not hold, the call raises
// RuntimeError with the text of the further arguments.
//
//   STD_TORCH_CHECK(x.dim() == 2, "expected a matrix, got ", x.dim(), " dimensions");
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

#include <torch/headeronly/macros/Macros.h>

HIDDEN_NAMESPACE_BEGIN(torch, headeronly, detail)

// The text of the arguments; where there are none, the text of the condition.
template <typename... Args>
std::string check_text(const char* condition, const Args&... args) {
  if constexpr (sizeof...(args) == 0) {
    return std::string("expected ") + condition;
  } else {
    std::ostringstream text;
    (text << ... << args);
    return text.str();
  }
}

HIDDEN_NAMESPACE_END(torch, headeronly, detail)

#define STD_TORCH_CHECK_MSG(condition, type, ...) \
  (torch::headeronly::detail::check_text(#condition, ##__VA_ARGS__))

#define STD_TORCH_CHECK(condition, ...)                                                         \
  if (C10_UNLIKELY(!(condition))) {                                                             \
    throw std::runtime_error(torch::headeronly::detail::check_text(#condition, ##__VA_ARGS__) + \
                             " (" + __func__ + ", " __FILE__ ":" C10_STRINGIZE(__LINE__) ")");  \
  }
