// Differentiates an expression of elements by the facts of aten/scalar/functions.yaml: the
// derivative of each function by each of its arguments. The chain rule is all that is added.
//
//   self / (1 + abs(self))     by self: 1 / (1 + abs(self)) - self / (1 + ...) / ... * sgn(self)
//
// A change of complex numbers may be multiplied by the derivative as it is or as its conjugate:
// with `a = slopes.plain` and `b = slopes.conjugate`, the result changes by a * dx + b * conj(dx).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include "codegen/schemac/expressions/scalar_functions.h"
#include "core/schema/expr.h"

namespace treadle::schemac {

// What has no derivative, in a sentence for people.
class Underivable : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// nullptr stands for 0.
struct Slopes {
  schema::Expr plain, conjugate;

  bool are_zero() const { return !plain && !conjugate; }
};

struct Differentiation {
  const ScalarFunctions& functions;
  bool complex = false;  // the numbers may be
  // What facts call `result` is that of the whole expression, which backward can keep.
  bool names_result = true;

  // Throws Underivable.
  Slopes by(const std::string& name, const schema::Expr& expression) const;

  // The complex conjugate, taken of the names; real numbers are their own.
  schema::Expr conjugate(const schema::Expr& expression) const;
  // Simplified, with conjugates of names alone.
  schema::Expr normal(const schema::Expr& expression) const;
};

}  // namespace treadle::schemac
