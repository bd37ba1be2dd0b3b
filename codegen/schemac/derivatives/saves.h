// The values that backward must keep from forward, read off the tree of a derivative formula.
//
//   grad * other              saves other
//   sum_to(grad, self.sizes())  saves the sizes of self, not self
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "codegen/schemac/model.h"

namespace treadle::schemac {

// "result", or "result0", "result1", ... and the results' own names: every way to name result
// `index`.
std::vector<std::string> result_names(const schema::FunctionSchema& schema, std::size_t index);

// The arguments and results that `tree` uses, in the order of their first use.
std::vector<Save> saves_of(const schema::Expr& tree, const schema::FunctionSchema& schema);

// True if the formula uses the incoming gradient: `grad` and `grads`, unless these are arguments.
bool uses_gradient(const schema::Expr& tree, const schema::FunctionSchema& schema);
// The results whose gradients the formula reads one by one: `grads[1]`, and `grad`, which is that
// of the first that `differentiable` says to have one. Sorted.
std::vector<int> gradients_of(const schema::Expr& tree, const schema::FunctionSchema& schema,
                              const std::vector<bool>& differentiable);

}  // namespace treadle::schemac
