// Writes an expression of elements as a formula of operators, in the form in which one would stand
// in derivatives.yaml:
//
//   grad * conj(cos(x))     of elements, in any grouping
//   grad * conj(cos(self))  of operators: the incoming gradient first, then its factors
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "codegen/schemac/derivatives/callables.h"
#include "codegen/schemac/derivatives/element_operators.h"
#include "codegen/schemac/derivatives/slopes.h"
#include "codegen/schemac/model.h"

namespace treadle::schemac {

// The name of the incoming gradient where an argument is called `grad`.
inline constexpr const char* kIndexedGradient = "grads[0]";

class FormulaWriter {
 public:
  // `leads`: the names of what flows through the derivative, the incoming gradient or the tangents.
  FormulaWriter(const Operator& op, std::vector<std::string> leads, const Differentiation& rules,
                const ElementOperators& operators, const Callables& callables);

  // Throws Underivable where an operator is missing. The tree has places of its own.
  schema::Expr write(const schema::Expr& expression) const;

 private:
  bool is_tensor(const schema::Expr& expression) const;
  bool is_lead(const schema::Expr& expression) const;
  bool is_conjugated(const schema::Expr& expression) const;

  schema::Expr written(const schema::Expr& expression) const;
  schema::Expr sum(const schema::Expr& expression) const;
  schema::Expr product(const schema::Expr& expression) const;
  schema::Expr product_of_numbers(const std::vector<schema::Expr>& numbers,
                                  double coefficient) const;
  schema::Expr comparison(const schema::ExprNode& node) const;
  schema::Expr function(const schema::ExprNode& node) const;
  // The call of a function that formulas have.
  schema::Expr call(const std::string& name, std::vector<schema::Expr> arguments) const;

  const Operator& op_;
  std::vector<std::string> leads_;
  const Differentiation& rules_;
  const ElementOperators& operators_;
  const Callables& callables_;
};

}  // namespace treadle::schemac
