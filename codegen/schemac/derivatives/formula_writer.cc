// A product has an order: the incoming gradient, tensors, their quotient, numbers. So a formula of
// one tensor makes as few passes over memory as it can, and a scale of 1 makes none.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/derivatives/formula_writer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "codegen/schemac/derivatives/algebra.h"
#include "core/schema/dtypes.h"

namespace treadle::schemac {
namespace {

using algebra::Product;
using algebra::Term;
using schema::Expr;
using schema::ExprKind;
using schema::ExprNode;

bool is_conj(const Expr& a) { return a->kind == ExprKind::Call && a->text == "conj"; }

Expr binary(const char* op, const Expr& a, const Expr& b) {
  return algebra::node(ExprKind::Binary, op, {a, b});
}

Expr negated(const Expr& a) { return algebra::node(ExprKind::Unary, "-", {a}); }

}  // namespace

FormulaWriter::FormulaWriter(const Operator& op, std::vector<std::string> leads,
                             const Differentiation& rules, const ElementOperators& operators,
                             const Callables& callables)
    : op_(op),
      leads_(std::move(leads)),
      rules_(rules),
      operators_(operators),
      callables_(callables) {}

Expr FormulaWriter::write(const Expr& expression) const {
  if (algebra::is_number(expression, 0)) {
    return call("zeros_like", {algebra::name(leads_[0])});
  }
  const auto has_value = [this](const Expr& part) { return is_tensor(part); };
  if (const auto found = operators_.whole(expression, inexact_dtypes(op_), rules_, has_value)) {
    std::vector<Expr> arguments;
    for (const Expr& argument : found->arguments) arguments.push_back(written(argument));
    return call(found->function, std::move(arguments));
  }
  return written(expression);
}

bool FormulaWriter::is_lead(const Expr& expression) const {
  const Expr& inner = is_conj(expression) ? expression->children[0] : expression;
  return inner->kind == ExprKind::Name &&
         std::find(leads_.begin(), leads_.end(), inner->text) != leads_.end();
}

bool FormulaWriter::is_tensor(const Expr& expression) const {
  bool found = false;
  visit(expression, [&](const ExprNode& node) {
    if (node.kind != ExprKind::Name || schema::is_number_constant(node.text)) return;
    const schema::Argument* argument = op_.schema.find_argument(node.text);
    found = found || !argument || argument->type.is_tensor();
  });
  return found;
}

// Whether it is the conjugate of an expression without conjugates. Conditions are of no account.
bool FormulaWriter::is_conjugated(const Expr& expression) const {
  if (is_conj(expression)) return true;
  if (expression->kind == ExprKind::Name) return schema::is_number_constant(expression->text);
  const std::size_t first = expression->kind == ExprKind::Select ? 1 : 0;
  return std::all_of(expression->children.begin() + static_cast<std::ptrdiff_t>(first),
                     expression->children.end(),
                     [this](const Expr& child) { return is_conjugated(child); });
}

Expr FormulaWriter::call(const std::string& name, std::vector<Expr> arguments) const {
  if (!callables_.find(name)) throw Underivable("there is no operator " + name);
  return algebra::call(name, std::move(arguments));
}

Expr FormulaWriter::written(const Expr& expression) const {
  if (const auto value = algebra::value_of(expression)) return algebra::number(*value);
  if (expression->kind == ExprKind::Name && expression->text == kIndexedGradient)
    return algebra::node(ExprKind::Index, "", {algebra::name("grads"), algebra::number(0)});
  if (expression->kind == ExprKind::Name || expression->kind == ExprKind::Bool)
    return algebra::node(expression->kind, expression->text);
  // Where all of it is conjugated, one conjugate of the whole does.
  if (rules_.complex && is_conjugated(expression) && is_tensor(expression))
    return call("conj", {written(rules_.conjugate(expression))});
  if (algebra::is_sum(expression)) return sum(expression);
  if (algebra::is_product(expression)) return product(expression);
  if (expression->kind == ExprKind::Binary || expression->kind == ExprKind::Unary) {
    if (expression->text != "%") return comparison(*expression);
    const ScalarFunction* found = rules_.functions.of(*expression);
    return function(*algebra::call(found->function, expression->children));
  }
  return function(*expression);
}

Expr FormulaWriter::sum(const Expr& expression) const {
  Expr result;
  for (const Term& term : algebra::terms_of(expression)) {
    const double size = std::abs(term.coefficient);
    const Expr part = written(term.rest ? algebra::product(term.rest, algebra::number(size))
                                        : algebra::number(size));
    result = result ? binary(term.coefficient < 0 ? "-" : "+", result, part) : part;
  }
  return result;
}

Expr FormulaWriter::product_of_numbers(const std::vector<Expr>& numbers, double coefficient) const {
  Expr result;
  for (const Expr& number : numbers) {
    const Expr part = written(number);
    result = result ? binary("*", result, part) : part;
  }
  const double size = std::abs(coefficient);
  if (!result) return algebra::number(coefficient);
  if (size != 1) return binary("*", result, algebra::number(coefficient));
  return coefficient < 0 ? negated(result) : result;
}

Expr FormulaWriter::product(const Expr& expression) const {
  const Product parts = algebra::factors_of(expression);
  if (!is_tensor(expression)) {
    if (!parts.divisors.empty()) throw Underivable("formulas divide no number by a number");
    return product_of_numbers(parts.factors, parts.coefficient);
  }
  Expr lead;
  double coefficient = parts.coefficient;
  std::vector<Expr> plain, conjugated, numbers, divisors, number_divisors;
  for (const Expr& factor : parts.factors) {
    if (!lead && is_lead(factor)) {
      lead = factor;
    } else if (!is_tensor(factor)) {
      numbers.push_back(factor);
    } else if (rules_.complex && is_conjugated(factor)) {
      conjugated.push_back(factor);
    } else {
      plain.push_back(factor);
    }
  }
  for (const Expr& divisor : parts.divisors)
    (is_tensor(divisor) ? divisors : number_divisors).push_back(divisor);

  Expr result = lead ? written(lead) : nullptr;
  const auto multiply = [&](const Expr& factor) {
    result = result ? binary("*", result, factor) : factor;
  };
  // A quotient is a factor of its own, since the incoming gradient may be large where it is small.
  if (!divisors.empty()) {
    std::vector<Expr> above = plain;
    above.insert(above.end(), conjugated.begin(), conjugated.end());
    if (above.empty() && !result) {
      result = product_of_numbers(std::exchange(numbers, {}), parts.coefficient);
      coefficient = 1;
    }
    if (above.empty()) {
      for (const Expr& divisor : divisors) result = binary("/", result, written(divisor));
    } else {
      std::vector<Expr> all = above;
      all.insert(all.end(), divisors.begin(), divisors.end());
      const bool whole =
          rules_.complex && std::all_of(all.begin(), all.end(),
                                        [&](const Expr& part) { return is_conjugated(part); });
      const auto one = [&](const Expr& part) {
        return written(whole ? rules_.conjugate(part) : part);
      };
      Expr quotient;
      for (const Expr& factor : above)
        quotient = quotient ? binary("*", quotient, one(factor)) : one(factor);
      for (const Expr& divisor : divisors) quotient = binary("/", quotient, one(divisor));
      multiply(whole ? call("conj", {quotient}) : quotient);
    }
  } else {
    for (const Expr& factor : plain) multiply(written(factor));
    if (!conjugated.empty()) {
      Expr inner;
      for (const Expr& factor : conjugated) {
        const Expr part = written(rules_.conjugate(factor));
        inner = inner ? binary("*", inner, part) : part;
      }
      multiply(call("conj", {inner}));
    }
  }
  // The helpers `div_by_scalar` and `scaled` take the conjugate of a number; `scaled` passes over
  // no memory for a scale of 1.
  for (const Expr& divisor : number_divisors) {
    const bool helped = lead && (rules_.complex && is_conjugated(divisor)) == rules_.complex;
    result = helped ? call("div_by_scalar", {result, written(rules_.conjugate(divisor))})
                    : binary("/", result, written(divisor));
  }
  if (numbers.empty()) {
    if (coefficient == -1) return negated(result);
    if (coefficient == 1) return result;
    return binary("*", result, algebra::number(coefficient));
  }
  const bool conjugate =
      rules_.complex && std::all_of(numbers.begin(), numbers.end(),
                                    [this](const Expr& number) { return is_conjugated(number); });
  if (!lead || conjugate != rules_.complex)
    return binary("*", result, product_of_numbers(numbers, coefficient));
  for (Expr& number : numbers) number = rules_.conjugate(number);
  return call("scaled", {result, product_of_numbers(numbers, coefficient)});
}

// Comparisons and what joins them. A tensor comes first.
Expr FormulaWriter::comparison(const ExprNode& node) const {
  static const std::map<std::string, std::string> turned = {
      {"<", ">"}, {"<=", ">="}, {">", "<"}, {">=", "<="}, {"==", "=="}, {"!=", "!="}};
  std::vector<Expr> operands = node.children;
  std::string op = node.text;
  if (operands.size() == 2 && !is_tensor(operands[0]) && turned.count(op)) {
    std::swap(operands[0], operands[1]);
    op = turned.at(op);
  }
  const bool joins = !turned.count(op);
  const bool fits =
      is_tensor(operands[0]) && (!joins || operands.size() < 2 || is_tensor(operands[1]));
  if (!fits) throw Underivable("no operator computes '" + print(node) + "' of numbers");
  for (Expr& operand : operands) operand = written(operand);
  return algebra::node(node.kind, op, std::move(operands));
}

Expr FormulaWriter::function(const ExprNode& node) const {
  if (node.kind == ExprKind::Call && node.text == "conj")
    return call("conj", {written(node.children[0])});
  const auto has_value = [this](const Expr& part) { return is_tensor(part); };
  const auto found = operators_.one_function(node, has_value);
  // A choice between numbers has no tensor to take its dtype from.
  const bool has_dtype =
      node.kind != ExprKind::Select || is_tensor(node.children[1]) || is_tensor(node.children[2]);
  if (!found || !has_dtype) throw Underivable("no operator computes '" + print(node) + "'");
  std::vector<Expr> arguments;
  for (const Expr& argument : found->arguments) arguments.push_back(written(argument));
  return call(found->function, std::move(arguments));
}

}  // namespace treadle::schemac
