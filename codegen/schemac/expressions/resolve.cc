// Walks over expression trees; each function reports all it finds.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/expressions/resolve.h"

#include <algorithm>
#include <span>

#include "codegen/schemac/entries/tables.h"
#include "codegen/schemac/expressions/scalar_functions.h"
#include "codegen/schemac/expressions/types.h"
#include "core/schema/dtypes.h"

namespace treadle::schemac {
namespace {

using schema::Argument;
using schema::BaseType;
using schema::ExprKind;
using schema::ExprNode;

std::string list_of(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

// What is wrong with a call in a condition, as the hint that says how it is written; nullptr if it
// is right.
const char* problem_of_call(const ExprNode& call, const Operator& op, bool outermost) {
  const auto& children = call.children;
  const auto is_argument = [&](const schema::Expr& child) {
    return child->kind == ExprKind::Name && op.schema.find_argument(child->text);
  };
  if (call.text == "any") {
    const bool names = std::all_of(children.begin(), children.end(), is_argument);
    return outermost && names && !children.empty()
               ? nullptr
               : "write it alone, with names of arguments, as in 'any(alpha, beta)'";
  }
  if (call.text == "one_of") {
    const bool texts = children.size() >= 2 && is_argument(children[0]) &&
                       op.schema.find_argument(children[0]->text)->type.base == BaseType::Str &&
                       std::all_of(children.begin() + 1, children.end(), [](const auto& child) {
                         return child->kind == ExprKind::String;
                       });
    return texts ? nullptr
                 : "it takes an argument of type str and the texts it may be, as in "
                   "'one_of(side, \"left\", \"right\")'";
  }
  return "the functions of conditions are 'any' and 'one_of'";
}

bool has_element_value(const schema::Type& type) {
  if (type.list || (type.optional && !type.is_tensor())) return false;
  switch (type.base) {
    case BaseType::Tensor:
    case BaseType::Scalar:
    case BaseType::Int:
    case BaseType::SymInt:
    case BaseType::Float:
    case BaseType::SymFloat:
    case BaseType::Bool:
    case BaseType::SymBool:
      return true;
    default:
      return false;
  }
}

std::string count_of(int least, int most) {
  if (least == most) return std::to_string(least) + (least == 1 ? " argument" : " arguments");
  return std::to_string(least) + " to " + std::to_string(most) + " arguments";
}

bool gives_truth(const ExprNode& node) {
  if (node.kind == ExprKind::Bool) return true;
  if (node.kind == ExprKind::Unary) return node.text == "!";
  if (node.kind != ExprKind::Binary) return false;
  constexpr std::string_view kArithmetic = "+-*/%";
  return kArithmetic.find(node.text[0]) == std::string_view::npos;
}

void type_element(const ExprNode& node, Typing& typing) {
  using Kind = ExprType::Kind;
  typing.type = {gives_truth(node) ? Kind::Truth : Kind::Element, {}};
  if (node.kind != ExprKind::Call) return;
  Callee callee;
  callee.kind = Callee::Kind::Scalar;
  callee.function = node.text;
  typing.callee = std::move(callee);
}

}  // namespace

std::vector<std::string> argument_names(const schema::FunctionSchema& schema) {
  std::vector<std::string> names;
  for (const Argument& argument : schema.arguments) names.push_back(argument.name);
  return names;
}

bool is_known(std::string_view name, const Scope& scope) {
  return contains(scope.names, name) || schema::is_constant(name);
}

void check_names(const Expression& expression, const Scope& scope, Diagnostics& diagnostics) {
  visit(expression.tree, [&](const ExprNode& node) {
    if (node.kind != ExprKind::Name || is_known(node.text, scope)) return;
    std::string hint = schema::did_you_mean(node.text, scope.names);
    if (hint.empty()) {
      hint = scope.names.empty() ? "there are no " + scope.noun + "s to use"
                                 : "known are " + list_of(scope.names);
    }
    diagnostics.add(expression.source.diagnostic(
        node.offset, "unknown " + scope.noun + " '" + node.text + "' in " + scope.where,
        std::move(hint)));
  });
}

void check_condition(Expression& expression, const Operator& op, Diagnostics& diagnostics) {
  visit(expression.tree, [&](const ExprNode& node) {
    if (node.kind != ExprKind::Call) return;
    if (const char* problem = problem_of_call(node, op, &node == expression.tree.get())) {
      diagnostics.add(expression.source.diagnostic(
          node.offset, "call of '" + node.text + "' in check of " + op.name(), problem));
    }
  });
  const ExprType type = type_condition(expression, op, diagnostics);
  if (type.is_unknown() || type.is(BaseType::Bool)) return;
  diagnostics.add(expression.source.diagnostic(
      expression.tree->offset,
      "'" + print(expression.tree) + "' in check of " + op.name() + " is not a condition",
      "compare it with something, as in '" + print(expression.tree) + " > 0'"));
}

void check_scalar_expression(Expression& expression, const Operator& op, const std::string& where,
                             Diagnostics& diagnostics) {
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
      const ScalarFunction* function = find_scalar_function(node.text);
      const int count = static_cast<int>(node.children.size());
      if (!function) {
        std::string hint = schema::did_you_mean(node.text, scalar_function_names());
        if (hint.empty())
          hint =
              "the functions of one element are listed in "
              "codegen/schemac/expressions/scalar_functions.cc";
        report(node.offset, "unknown function '" + node.text + "'", std::move(hint));
      } else if (count < function->least || count > function->most) {
        report(node.offset,
               "'" + node.text + "' takes " + count_of(function->least, function->most) + ", got " +
                   std::to_string(count),
               "");
      }
    }
    type_element(node, expression.typing[&node]);
  });
}

}  // namespace treadle::schemac
