// The operator model: what native_functions.yaml and derivatives.yaml say, checked and with every
// default filled in.
//
// It is built once, in the order of the files, and then only read. opmodel.json is this model
// written down.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/schemac/expressions/expr_type.h"
#include "codegen/schemac/expressions/scalar_functions.h"
#include "core/schema/diagnostic.h"
#include "core/schema/expr.h"
#include "core/schema/function_schema.h"

namespace treadle::schemac {

// To which function a call goes.
struct Callee {
  enum class Kind {
    Operator,   // of the model, or of the model that a library stands on
    Helper,     // declared in formulas.yaml
    Method,     // of a tensor, a list or a number
    Scalar,     // a function of elements
    Condition,  // any, message, one_of
    Shape,      // a shape rule
    Word,       // not_implemented
  };
  Kind kind = Kind::Operator;
  std::string ns;           // the namespace of an operator or a helper
  std::string function;     // its name in C++: add, add_out, sum_to
  std::string schema_name;  // and with the overload: add.Tensor
  std::string entry;        // of an operator: the base name of its entry

  bool operator==(const Callee&) const = default;
};
std::string_view name_of(Callee::Kind kind);

// The facts about a node of an expression.
struct Typing {
  ExprType type;
  std::optional<Callee> callee;  // of a call or a method
};

struct Expression {
  schema::SourceText source;
  schema::Expr tree;
  std::map<const schema::ExprNode*, Typing> typing;

  schema::SourceLocation place() const { return source.place(tree->offset); }
};

// How an operator comes to its result.
enum class Kind {
  Pointwise,  // from its `pointwise` expression, for one element at a time
  Reduce,     // from its `reduce` expressions
  View,       // a kernel that only touches metadata, the same on every device
  Kernel,     // kernels that fill outputs allocated from the shape rule
  Returns,    // kernels that return their results, whose shape depends on values
  Composite,  // from other operators
  Mutating,   // kernels that write an argument
};
std::string_view name_of(Kind kind);

// One of the signatures an entry gives: functional, inplace or out.
struct Form {
  std::string form;
  schema::FunctionSchema schema;
};

struct DispatchEntry {
  std::string key;  // a backend, "Composite", "View" or "Alias"
  std::string kernel;
  int line = 0;
};

// The parts that are given of init, step, combine and final, in this order.
using Reduction = std::vector<std::pair<std::string, Expression>>;

// A value of forward that a formula needs in backward.
struct Save {
  std::string name;
  std::string what;  // value, or the one piece of metadata that is used
  bool is_output = false;
  int index = 0;  // among the arguments or the results
};

struct Formula {
  std::vector<std::string> targets;
  Expression expression;
  std::vector<Save> saves;
  bool derived = false;  // from the entry's `pointwise` expression
};

struct Derivative {
  std::string file;
  schema::SourceLocation place;
  std::vector<Formula> formulas;
  std::vector<std::string> non_differentiable;
  std::vector<bool> output_differentiability;
};

// What follows from a `pointwise` expression by differentiating it.
struct Derivation {
  struct Gradient {
    std::string argument;
    Expression formula;
  };
  std::vector<Gradient> gradients;
  std::vector<std::string> truths;  // arguments that are truth values, which have none
  // Arguments by which it cannot be differentiated, and why.
  std::vector<std::pair<std::string, std::string>> missing;
  // How the result changes where an argument `self` changes by `self_t`.
  std::optional<Expression> tangent;
};

// The dtypes of a tensor argument beside the one that `dtype_of` names.
struct ArgumentDtypes {
  std::string argument;
  std::vector<std::string> dtypes;  // these are always right
  bool same = false;                // and that of the argument which `dtype_of` names
  bool sums = false;                // and the one in which sums of that one's elements are kept
};

// The call that an operator from another entry's `foreach` makes for each place of its lists.
struct ForeachOf {
  std::string of;    // the entry, without its namespace
  std::string form;  // and the form of it, functional or inplace
  // The entry's arguments that it takes, each with its name here; others have their defaults.
  std::vector<std::pair<std::string, std::string>> arguments;
};

struct Operator {
  schema::SourceText source;  // of the schema
  schema::FunctionSchema schema;
  std::string doc;
  std::vector<std::string> variants;
  std::optional<std::string> python_module;
  std::vector<std::string> tags;
  // Arguments whose elements the operator moves without a look at them.
  std::vector<std::string> moves;
  Kind kind = Kind::Composite;
  std::vector<Form> forms;
  std::vector<DispatchEntry> dispatch;
  bool data_dependent = false;
  std::optional<Expression> shape;
  std::vector<Expression> checks;
  // Arguments of which the entry says that every value is fine: check: [any(alpha)].
  std::vector<std::string> unlimited;
  std::optional<Expression> pointwise;
  std::optional<Reduction> reduce;
  // The dtypes in which computing `pointwise` or `reduce` may end in an exception, and whether the
  // lowest bits of a result follow from those of the operands.
  std::vector<std::string> throws;
  // The arguments of which one is 0 where it does; none where that is not known.
  std::vector<std::string> throws_if_zero;
  bool keeps_low_bits = false;
  std::optional<std::string> promote;
  // Device or "all", in which dtype it runs there under autocast; none: as called.
  std::vector<std::pair<std::string, std::string>> autocast;
  std::vector<std::pair<std::string, std::vector<std::string>>>
      dtypes;  // device or "all", names of dtypes
  std::optional<std::string> dtype_of;
  // For an operator with kernels of its own: one for each tensor argument that has to be looked at.
  std::vector<ArgumentDtypes> argument_dtypes;
  std::optional<std::string> out_from;
  std::optional<ForeachOf> foreach_of;
  std::optional<Derivation> derivation;  // of a pointwise operator
  std::optional<Derivative> derivative;

  std::string name() const { return print(schema.name); }
};

// Names of arguments, in groups: a result is linear in the arguments of each group together while
// the others are held. {{"grad"}}, {{"a"}, {"b"}} of a product, {{"grad_h", "grad_c"}} of a sum.
using LinearIn = std::vector<std::vector<std::string>>;

// A function written by hand that formulas may call beside operators.
struct Helper {
  schema::FunctionSchema schema;
  std::string ns;  // of its C++ function
  LinearIn linear;
  schema::SourceText source;  // of the schema
};

struct Model {
  std::vector<Operator> operators;
  std::vector<Helper> helpers;
  std::vector<ScalarFunction> scalar_functions;
  // Names of entries that were refused, so that nothing is said twice about them.
  std::vector<std::string> refused;
};

// The C++ identifier of an operator: add_Tensor for add.Tensor.
std::string identifier_of(const schema::OperatorName& name);

}  // namespace treadle::schemac
