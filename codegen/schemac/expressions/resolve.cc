// Walks over expression trees; each function reports all it finds.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/expressions/resolve.h"

#include <algorithm>
#include <span>

#include "codegen/schemac/entries/tables.h"
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

// The error in a call in a condition, as the hint that says how it is written; nullptr if it
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
  if (call.text == "message") {
    const bool words = children.size() == 2 && children[1]->kind == ExprKind::String;
    return outermost && words ? nullptr
                              : "it takes a whole condition and the words for it, as in "
                                "'message(a > 0 || b > 0, \"a or b > 0\")'";
  }
  return "the functions of conditions are 'any', 'message' and 'one_of'";
}

// Whether the condition is more than one comparison: its text is no message for people.
bool is_compound(const schema::Expr& condition) {
  bool compound = false;
  visit(condition, [&](const ExprNode& node) {
    compound = compound || node.kind == ExprKind::Select || node.text == "&&" ||
               node.text == "||" || (node.kind == ExprKind::Unary && node.text == "!");
  });
  return compound;
}

bool is_message(const Expression& expression) {
  return expression.tree->kind == ExprKind::Call && expression.tree->text == "message";
}

// The condition that message() is given, or the whole expression.
const schema::Expr& condition_of(const Expression& expression) {
  const bool within = is_message(expression) && !expression.tree->children.empty();
  return within ? expression.tree->children[0] : expression.tree;
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
  const schema::Expr& condition = condition_of(expression);
  const ExprType of = condition == expression.tree ? type : expression.typing[condition.get()].type;
  if (of.is_unknown() || of.is(BaseType::Bool)) return;
  diagnostics.add(expression.source.diagnostic(
      condition->offset,
      "'" + print(condition) + "' in check of " + op.name() + " is not a condition",
      "compare it with something, as in '" + print(condition) + " > 0'"));
}

void check_words(const Expression& expression, const Operator& op, Diagnostics& diagnostics) {
  if (is_message(expression) || !is_compound(expression.tree)) return;
  const std::string condition = print(expression.tree);
  diagnostics.add(expression.source.diagnostic(
      expression.tree->offset,
      "'" + condition + "' in check of " + op.name() + " has several parts and no words for people",
      "write 'message(" + condition + ", \"...\")', which says what is expected"));
}

}  // namespace treadle::schemac
