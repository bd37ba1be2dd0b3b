// The functions and operators of elements that `pointwise` and `reduce` expressions are made of, as
// aten/scalar/functions.yaml has them:
//
//   - function: softplus(x, beta=1, threshold=20)
//     of: floating
//     ulp: {float32: 4, float64: 4}
//     derivative: {x: "beta * x > threshold ? 1 : sigmoid(beta * x)", beta: ..., threshold: ...}
//   - operator: a % b
//     function: remainder
//     of: [bool, real]
//     throws: [bool, integral]
//     throws_if_zero: b
//
// docs/scalar-functions.md says what each key means.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/schemac/diagnostics.h"
#include "codegen/schemac/yaml_file.h"
#include "core/schema/expr.h"

namespace treadle::schemac {

// How far results may be from the exact ones, for tests and for the page of accuracy.
struct ErrorBound {
  bool rounded = false;  // what comes out is the nearest number to the exact one
  std::vector<std::pair<std::string, double>> ulp;  // by dtype
  std::string of;                                   // what the last places are counted of
  std::string of_complex;
  std::string range;  // in words, where it is not all numbers
  std::optional<double> above;
};

struct ScalarFunction {
  struct Argument {
    std::string name;
    std::optional<std::string> default_value;  // a number, as written
  };
  std::string name;  // of an operator its sign
  std::vector<Argument> arguments;
  bool is_operator = false;
  std::string function;  // the one that an operator is where C++ has no such operator
  std::string doc;
  std::string section;              // the heading that it stands under
  std::vector<std::string> dtypes;  // that it can be of
  std::vector<std::string> throws;  // of which a call may end in an exception
  // The argument that is 0 in each such call; empty where others may throw, too.
  std::string throws_if_zero;
  bool gives_truth = false;
  bool keeps_low_bits = false;  // the lowest bits of a result follow from those of the operands
  std::string reference;        // a function of NumPy or SciPy
  std::optional<std::pair<double, double>> samples;
  ErrorBound error;
  // The derivative by each argument, an expression of elements over the arguments and `result`;
  // none where it is not known.
  struct Slope {
    std::string argument;
    schema::SourceText source;
    schema::Expr tree;
  };
  std::vector<Slope> derivative;
  bool holomorphic = true;  // the derivative is that by a complex number, too

  schema::Expr derivative_by(std::string_view argument) const;  // nullptr for none

  std::size_t least() const;  // number of arguments
  std::size_t most() const { return arguments.size(); }
  // "softplus(x, beta=1, threshold=20)", "a % b".
  std::string text() const;
  std::string takes() const;  // "'softplus' takes 1 to 3 arguments"
};

class ScalarFunctions {
 public:
  // Reports errors, and leaves out entries that have no name.
  void read(const YamlFile& file, Diagnostics& diagnostics);
  // Those of a model written by schemac.
  void add_model(const std::string& json);

  // nullptr for an unknown name.
  const ScalarFunction* find(std::string_view function) const;
  // The function or operator that a node is; nullptr for one that is none, or an unknown one.
  const ScalarFunction* of(const schema::ExprNode& node) const;
  std::vector<std::string> names() const;
  const std::vector<ScalarFunction>& all() const { return functions_; }
  // The ones that a file gave.
  std::vector<ScalarFunction> own() const;

 private:
  const ScalarFunction* find(std::string_view name, bool is_operator, std::size_t count) const;
  void check_derivatives(const ScalarFunction& function, Diagnostics& diagnostics) const;

  std::vector<ScalarFunction> functions_;
  std::size_t from_model_ = 0;  // the first ones
};

}  // namespace treadle::schemac
