// An element is a number or a truth value. The dtypes of the numbers follow from the operator's
// dtypes and its promotion.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/expressions/elements.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "codegen/schemac/entries/tables.h"
#include "codegen/schemac/expressions/expr_type.h"
#include "core/schema/dtypes.h"

namespace treadle::schemac {
namespace {

using schema::Argument;
using schema::DtypeKind;
using schema::ExprKind;
using schema::ExprNode;

bool has_element_value(const schema::Type& type) {
  if (type.list || (type.optional && !type.is_tensor())) return false;
  return type.is_tensor() || is_number(type.base);
}

// A choice between truth values is one.
bool gives_truth(const ExprNode& node, const ScalarFunctions& functions,
                 const Expression& expression) {
  const auto is_truth = [&](const schema::Expr& child) {
    return expression.typing.at(child.get()).type.kind == ExprType::Kind::Truth;
  };
  if (node.kind == ExprKind::Bool) return true;
  const ScalarFunction* function = functions.of(node);
  if (!function) return false;
  if (function->name == "where")
    return node.children.size() == 3 && is_truth(node.children[1]) && is_truth(node.children[2]);
  return function->gives_truth;
}

void type_elements(const ExprNode& node, const ScalarFunctions& functions, Expression& expression) {
  for (const schema::Expr& child : node.children) type_elements(*child, functions, expression);
  using Kind = ExprType::Kind;
  Typing& typing = expression.typing[&node];
  typing.type = {gives_truth(node, functions, expression) ? Kind::Truth : Kind::Element, {}};
  const ScalarFunction* function = functions.of(node);
  Callee callee;
  callee.kind = Callee::Kind::Scalar;
  if (node.kind == ExprKind::Call) {
    callee.function = node.text;
  } else if (function) {
    callee.function = function->is_operator ? function->function : function->name;
  }
  if (!callee.function.empty()) typing.callee = std::move(callee);
}

// The dtypes that the expressions of an operator compute in: what its operands are promoted to.
std::vector<std::string> computed_dtypes(const Operator& op) {
  std::vector<std::string> declared;
  for (const auto& [device, row] : op.dtypes)
    declared.insert(declared.end(), row.begin(), row.end());
  const std::string promote = op.promote.value_or("common");
  const auto is_computed = [&](const schema::Dtype& dtype) {
    const bool named = contains(declared, dtype.name);
    const bool fraction = dtype.kind == DtypeKind::Floating || dtype.kind == DtypeKind::Complex;
    if (promote == "bool") return dtype.kind == DtypeKind::Bool;
    if (promote == "float") return named && fraction;
    if (promote == "sum") return named && (fraction || dtype.name == "int64");
    return named;
  };
  std::vector<std::string> computed;
  for (const schema::Dtype& dtype : schema::kDtypes) {
    if (is_computed(dtype)) computed.emplace_back(dtype.name);
  }
  return computed;
}

// "bool, integral": classes where all of a class are there, else the dtypes by name.
std::string words_for(const std::vector<std::string>& dtypes) {
  std::string text;
  std::vector<std::string> left = dtypes;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  for (const char* word : {"bool", "integral", "floating", "complex"}) {
    const std::vector<std::string> members = expand_dtype(word);
    const auto is_member = [&](const std::string& dtype) { return contains(members, dtype); };
    const auto count = std::count_if(left.begin(), left.end(), is_member);
    if (count < static_cast<std::ptrdiff_t>(members.size())) continue;
    add(word);
    std::erase_if(left, is_member);
  }
  for (const std::string& dtype : left) add(dtype);
  return text;
}

class Facts {
 public:
  Facts(Operator& op, const ScalarFunctions& functions, Diagnostics& diagnostics)
      : op_(op), functions_(functions), diagnostics_(diagnostics), computed_(computed_dtypes(op)) {}

  void add(const Expression& expression, const std::string& where) {
    visit(expression.tree, [&](const ExprNode& node) {
      const bool plain = node.kind == ExprKind::Name || node.kind == ExprKind::Int;
      const ScalarFunction* function = functions_.of(node);
      keeps_low_bits_ = keeps_low_bits_ && (plain || (function && function->keeps_low_bits));
      if (!function) return;
      throws_.insert(throws_.end(), function->throws.begin(), function->throws.end());
      if (!function->throws.empty()) add_divisor(node, *function);
      check(node, *function, expression, where);
    });
  }

  void finish() {
    for (const std::string& dtype : computed_) {
      if (contains(throws_, dtype)) op_.throws.push_back(dtype);
    }
    op_.keeps_low_bits = keeps_low_bits_;
    if (op_.pointwise && !op_.throws.empty() && throws_if_zero_alone_)
      op_.throws_if_zero = throws_if_zero_;
  }

 private:
  // Where a call throws only if an argument of it is 0, and that is an argument of the entry.
  void add_divisor(const schema::ExprNode& node, const ScalarFunction& function) {
    const auto& arguments = function.arguments;
    const auto found = std::find_if(arguments.begin(), arguments.end(), [&](const auto& argument) {
      return argument.name == function.throws_if_zero;
    });
    const auto at = static_cast<std::size_t>(found - arguments.begin());
    if (found == arguments.end() || at >= node.children.size() ||
        node.children[at]->kind != ExprKind::Name) {
      throws_if_zero_alone_ = false;
      return;
    }
    const std::string& name = node.children[at]->text;
    if (!contains(throws_if_zero_, name)) throws_if_zero_.push_back(name);
  }

  void check(const ExprNode& node, const ScalarFunction& function, const Expression& expression,
             const std::string& where) {
    std::vector<std::string> others;
    for (const std::string& dtype : computed_) {
      if (!contains(function.dtypes, dtype)) others.push_back(dtype);
    }
    if (others.empty()) return;
    const bool integers = std::any_of(others.begin(), others.end(), [](const std::string& dtype) {
      return is_integral(schema::find_dtype(dtype)->kind);
    });
    const std::string what = node.text.empty() ? "?" : node.text;
    std::string hint = "'" + function.text() + "' is of " + words_for(function.dtypes) + "; ";
    if (integers && contains(function.dtypes, "float32")) hint += "write 'promote: float', or ";
    hint += "leave the others out under 'dtypes'";
    diagnostics_.add(expression.source.diagnostic(
        node.offset, "'" + what + "' of " + words_for(others) + " in " + where, hint));
  }

  Operator& op_;
  const ScalarFunctions& functions_;
  Diagnostics& diagnostics_;
  std::vector<std::string> computed_;
  std::vector<std::string> throws_;
  std::vector<std::string> throws_if_zero_;
  bool throws_if_zero_alone_ = true;
  bool keeps_low_bits_ = true;
};

}  // namespace

void check_elements(Expression& expression, const Operator& op, const ScalarFunctions& functions,
                    const std::string& where, Diagnostics& diagnostics) {
  const auto report = [&](std::size_t offset, std::string message, std::string hint) {
    diagnostics.add(
        expression.source.diagnostic(offset, std::move(message) + " in " + where, std::move(hint)));
  };
  visit(expression.tree, [&](const ExprNode& node) {
    if (node.kind == ExprKind::Method) {
      report(node.name_offset, "method '" + node.text + "'",
             "an element has no methods; call a function, as in 'exp(x)'");
    } else if (node.kind == ExprKind::None || node.kind == ExprKind::String ||
               node.kind == ExprKind::Index ||
               (node.kind == ExprKind::List && &node != expression.tree.get())) {
      report(node.offset, "'" + print(node) + "'", "an element is a number");
    } else if (node.kind == ExprKind::Name) {
      const Argument* argument = op.schema.find_argument(node.text);
      if (argument && !has_element_value(argument->type)) {
        report(node.offset, "argument '" + node.text + "' of type '" + print(argument->type) + "'",
               "only tensors and single numbers have a value for each element");
      }
    } else if (node.kind == ExprKind::Call) {
      const ScalarFunction* function = functions.find(node.text);
      const std::size_t count = node.children.size();
      if (!function) {
        std::string hint = schema::did_you_mean(node.text, functions.names());
        if (hint.empty())
          hint = "the functions of one element are listed in aten/scalar/functions.yaml";
        report(node.offset, "unknown function '" + node.text + "'", std::move(hint));
      } else if (count < function->least() || count > function->most()) {
        report(node.offset, function->takes() + ", got " + std::to_string(count), "");
      }
    }
  });
  type_elements(*expression.tree, functions, expression);
}

void complete_elements(Operator& op, const ScalarFunctions& functions, Diagnostics& diagnostics) {
  if (!op.pointwise && !op.reduce) return;
  Facts facts(op, functions, diagnostics);
  if (op.pointwise) facts.add(*op.pointwise, "pointwise of " + op.name());
  if (op.reduce) {
    for (const auto& [part, expression] : *op.reduce)
      facts.add(expression, "reduce." + part + " of " + op.name());
  }
  facts.finish();
}

}  // namespace treadle::schemac
