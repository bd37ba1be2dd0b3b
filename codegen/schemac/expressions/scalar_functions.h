// The functions of one element that `pointwise` and `reduce` expressions may call, and how many
// arguments each takes.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace treadle::schemac {

struct ScalarFunction {
  std::string_view name;
  int least = 1;  // number of arguments
  int most = 1;
};

// nullptr for an unknown name.
const ScalarFunction* find_scalar_function(std::string_view name);
std::span<const std::string> scalar_function_names();

}  // namespace treadle::schemac
