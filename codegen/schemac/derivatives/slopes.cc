// One walk from the root: a part whose operands do not change needs no derivative.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/derivatives/slopes.h"

#include <utility>
#include <vector>

#include "codegen/schemac/derivatives/algebra.h"
#include "core/schema/dtypes.h"

namespace treadle::schemac {
namespace {

using schema::Expr;
using schema::ExprKind;
using schema::ExprNode;

class Walk {
 public:
  Walk(const Differentiation& rules, const std::string& name, const ExprNode& root)
      : rules_(rules), name_(name), root_(root) {}

  Slopes of(const Expr& node) const {
    if (node->kind == ExprKind::Name)
      return {node->text == name_ ? algebra::number(1) : nullptr, nullptr};
    if (node->kind == ExprKind::Select) return of_choice(node);
    const ScalarFunction* function = rules_.functions.of(*node);
    if (!function || function->gives_truth) return {};  // a truth value jumps, and else is constant
    if (function->name == "where") return of_choice(node);
    if (function->name == "conj") {
      const Slopes inner = of(node->children[0]);
      return {inner.conjugate ? rules_.conjugate(inner.conjugate) : nullptr,
              inner.plain ? rules_.conjugate(inner.plain) : nullptr};
    }
    Slopes result;
    for (std::size_t i = 0; i < node->children.size(); ++i) {
      const Slopes inner = of(node->children[i]);
      if (inner.are_zero()) continue;
      const Expr outer = fact(*function, i, node);
      result.plain = plus(result.plain, outer, inner.plain);
      result.conjugate = plus(result.conjugate, outer, inner.conjugate);
    }
    return result;
  }

 private:
  Slopes of_choice(const Expr& node) const {
    const Slopes then = of(node->children[1]), otherwise = of(node->children[2]);
    const auto chosen = [&](const Expr& a, const Expr& b) -> Expr {
      if (!a && !b) return nullptr;
      const Expr zero = algebra::number(0);
      return algebra::choice(rules_.normal(node->children[0]), a ? a : zero, b ? b : zero);
    };
    return {chosen(then.plain, otherwise.plain), chosen(then.conjugate, otherwise.conjugate)};
  }

  static Expr plus(const Expr& sum, const Expr& outer, const Expr& inner) {
    if (!inner || algebra::is_number(outer, 0)) return sum;
    const Expr term = algebra::product(outer, inner);
    const Expr whole = sum ? algebra::sum(sum, term) : term;
    return algebra::is_number(whole, 0) ? nullptr : whole;
  }

  // The derivative of a function by an argument, at the operands of `node`.
  Expr fact(const ScalarFunction& function, std::size_t argument, const Expr& node) const {
    const ScalarFunction::Argument& by = function.arguments[argument];
    const Expr tree = function.derivative_by(by.name);
    if (!tree) throw Underivable("no derivative of " + function.text() + " is known");
    if (tree->kind == ExprKind::Call && tree->text == "not_implemented")
      throw Underivable(tree->children[0]->text);
    if (rules_.complex && !function.holomorphic)
      throw Underivable(function.text() + " has no derivative by a complex number");
    return algebra::rebuilt(tree, [&](const std::string& name) -> Expr {
      if (name == "result")
        return node.get() == &root_ && rules_.names_result ? nullptr : rules_.normal(node);
      for (std::size_t i = 0; i < function.arguments.size(); ++i) {
        if (function.arguments[i].name != name) continue;
        if (i < node->children.size()) return rules_.normal(node->children[i]);
        return algebra::number(std::stod(*function.arguments[i].default_value));
      }
      return nullptr;  // inf, pi
    });
  }

  const Differentiation& rules_;
  const std::string& name_;
  const ExprNode& root_;
};

}  // namespace

Slopes Differentiation::by(const std::string& name, const Expr& expression) const {
  return Walk(*this, name, *expression).of(expression);
}

Expr Differentiation::conjugate(const Expr& expression) const {
  if (!complex || algebra::value_of(expression)) return expression;
  if (expression->kind == ExprKind::Call && expression->text == "conj")
    return expression->children[0];
  const ScalarFunction* function = functions.of(*expression);
  if (function && function->gives_truth) return expression;
  if (function && (function->holomorphic || function->name == "where")) {
    std::vector<Expr> children;
    for (const Expr& child : expression->children) children.push_back(conjugate(child));
    // A condition is the same of both.
    if (function->name == "where") children[0] = expression->children[0];
    return algebra::with_children(*expression, std::move(children));
  }
  const bool constant =
      expression->kind == ExprKind::Name && schema::is_number_constant(expression->text);
  return constant ? expression : algebra::call("conj", {expression});
}

Expr Differentiation::normal(const Expr& expression) const {
  if (expression->kind == ExprKind::Call && expression->text == "conj")
    return conjugate(normal(expression->children[0]));
  if (expression->children.empty() || algebra::value_of(expression))
    return algebra::rebuilt(expression, [](const std::string&) { return nullptr; });
  std::vector<Expr> children;
  for (const Expr& child : expression->children) children.push_back(normal(child));
  return algebra::with_children(*expression, std::move(children));
}

}  // namespace treadle::schemac
