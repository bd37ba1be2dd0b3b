// Finds the type of each part of an expression and the function that each call goes to, and reports
// what cannot be: a call with other arguments than the function takes, a method that its object
// does not have, a tensor where a number must be.
//
//   sum_to(grad, self.sizes()) * 2
//     self.sizes()   int[]    a method of tensors
//     sum_to(...)    Tensor   the helper sum_to(Tensor grad, int[] sizes) -> Tensor
//
// Each function fills in `typing` of the expression it is given.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "codegen/schemac/derivatives/callables.h"
#include "codegen/schemac/diagnostics.h"
#include "codegen/schemac/model.h"

namespace treadle::schemac {

// The types of names; unknown for those that are reported elsewhere.
using Names = std::function<ExprType(const std::string&)>;

// `where` is "the formula for 'self' of cos". The type of the formula.
ExprType type_formula(Expression& formula, const Names& names, const Callables& callables,
                      const std::string& where, Diagnostics& diagnostics);

// A condition under `check`, which is bool, or unknown where something was reported.
ExprType type_condition(Expression& condition, const Operator& op, Diagnostics& diagnostics);
// A shape rule, or a call of one.
void type_shape(Expression& shape, const Operator& op, Diagnostics& diagnostics);

}  // namespace treadle::schemac
