// The expressions of operators as C++ text for generated kernels. The text is the same as for the
// CPU's kernels, over the value types of aten/backend/cuda/device/values.cuh.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/scalar_type.h"
#include "core/dispatch/expression.h"

namespace treadle::cuda {

// "v_self + (v_alpha * v_other)": names are arguments v_NAME, all of one template type V.
std::string expression_text(const Expression& expression);

// "template <class V> static auto NAME(V v_a, V v_b) { return ...; }". The parameters are all names
// that the expression may use. It need not use all of them.
std::string function_text(std::string_view name, const std::vector<std::string>& parameters,
                          const Expression& expression);

// The type of elements in memory, or of the arithmetic: "float", "treadle::Half".
const char* type_name(ScalarType dtype);

// The name of an argument in the text: "v_self".
std::string variable(std::string_view name);

}  // namespace treadle::cuda
