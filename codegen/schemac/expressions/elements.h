// Checks expressions of elements, those of `pointwise` and `reduce`, against the table of the
// functions and operators that they are made of.
//
//   pointwise: erf(self)          dtypes: {all: real}
//   error: 'erf' of integral in pointwise of f; erf(x) is of floating; write 'promote: float', ...
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "codegen/schemac/diagnostics.h"
#include "codegen/schemac/expressions/scalar_functions.h"
#include "codegen/schemac/model.h"

namespace treadle::schemac {

// Reports what cannot be computed for one element: unknown functions, methods, arguments without a
// value per element. Fills in the types of its parts.
void check_elements(Expression& expression, const Operator& op, const ScalarFunctions& functions,
                    const std::string& where, Diagnostics& diagnostics);

// Reports the dtypes in which a pointwise or reduce operator cannot be computed, and fills in
// `throws` and `keeps_low_bits`. Its dtypes are known.
void complete_elements(Operator& op, const ScalarFunctions& functions, Diagnostics& diagnostics);

}  // namespace treadle::schemac
