// The operators by what they compute for one element, so that a derivative, which is an expression
// of elements, can be written as a formula of operators:
//
//   cos(x)                              the operator cos, whose entry says `pointwise: cos(self)`
//   grad * conj(1 - result * result)    tanh_backward(grad, result), in one call
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/schemac/derivatives/slopes.h"
#include "codegen/schemac/model.h"

namespace treadle::schemac {

class ElementOperators {
 public:
  struct Call {
    std::string function;
    std::vector<schema::Expr> arguments;  // expressions of elements
  };
  // Whether an expression has a value for each element, rather than one for all.
  using IsTensor = std::function<bool(const schema::Expr&)>;

  void add(const Operator& op);
  // Those of a model written by schemac.
  void add_model(const std::string& json);

  // The call that computes one function, or one choice, of operands that are computed before.
  std::optional<Call> one_function(const schema::ExprNode& node, const IsTensor& is_tensor) const;
  // The call that computes the whole expression, of names and numbers, in each of the dtypes.
  std::optional<Call> whole(const schema::Expr& expression, const std::vector<std::string>& dtypes,
                            const Differentiation& rules, const IsTensor& is_tensor) const;

 private:
  struct Candidate {
    schema::FunctionSchema schema;
    schema::Expr expression;
    std::vector<std::string> dtypes;
    std::string promote;
    bool has_checks = false;
  };
  std::vector<Candidate> candidates_;
};

// The dtypes in which gradients are computed, of those that an entry declares.
std::vector<std::string> inexact_dtypes(const Operator& op);
bool has_complex(const std::vector<std::string>& dtypes);

}  // namespace treadle::schemac
