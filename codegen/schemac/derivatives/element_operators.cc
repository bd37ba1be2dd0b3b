// Sums and products match in any order of their parts; everything else matches part by part.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/derivatives/element_operators.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "codegen/schemac/derivatives/algebra.h"
#include "codegen/schemac/entries/tables.h"
#include "core/schema/dtypes.h"

namespace treadle::schemac {
namespace {

using algebra::Product;
using algebra::Term;
using schema::Argument;
using schema::DtypeKind;
using schema::Expr;
using schema::ExprKind;
using schema::ExprNode;
using schema::FunctionSchema;

std::vector<std::string> inexact_of(const std::vector<std::string>& declared) {
  std::vector<std::string> found;
  for (const schema::Dtype& dtype : schema::kDtypes) {
    const bool inexact = dtype.kind == DtypeKind::Floating || dtype.kind == DtypeKind::Complex;
    if (inexact && contains(declared, std::string(dtype.name))) found.emplace_back(dtype.name);
  }
  return found;
}

bool is_conj(const Expr& a) { return a->kind == ExprKind::Call && a->text == "conj"; }

bool has_conjugate(const Expr& expression) {
  bool found = false;
  visit(expression, [&](const ExprNode& node) {
    found = found || (node.kind == ExprKind::Call && node.text == "conj");
  });
  return found;
}

// How many functions and operators of elements an expression has.
int operations_of(const Expr& expression) {
  int count = 0;
  visit(expression, [&](const ExprNode& node) {
    const bool plain =
        node.children.empty() || (node.kind == ExprKind::Call && node.text == "conj");
    count += !plain;
  });
  return count;
}

// One try to find a value for each argument of an operator, with which it computes an expression.
class Match {
 public:
  Match(const FunctionSchema& schema, const Differentiation& rules,
        const ElementOperators::IsTensor& is_tensor)
      : schema_(schema), rules_(rules), is_tensor_(is_tensor) {}

  bool matches(const Expr& pattern, const Expr& expression) {
    if (pattern->kind == ExprKind::Name && schema_.find_argument(pattern->text))
      return binds(*schema_.find_argument(pattern->text), expression);
    if (is_conj(pattern) && pattern->children[0]->kind == ExprKind::Name)
      return matches(pattern->children[0], rules_.conjugate(expression));
    if (const auto value = algebra::value_of(pattern))
      return algebra::is_number(expression, *value);
    if (algebra::is_sum(pattern))
      return algebra::is_sum(expression) &&
             match_terms(algebra::terms_of(pattern), algebra::terms_of(expression));
    if (algebra::is_product(pattern)) {
      if (!algebra::is_product(expression)) return false;
      const Product a = algebra::factors_of(pattern), b = algebra::factors_of(expression);
      const auto parts = [](const std::vector<Expr>& factors) {
        std::vector<Term> terms;
        for (const Expr& factor : factors) terms.push_back({1, factor});
        return terms;
      };
      return a.coefficient == b.coefficient && match_terms(parts(a.factors), parts(b.factors)) &&
             match_terms(parts(a.divisors), parts(b.divisors));
    }
    if (pattern->kind != expression->kind || pattern->text != expression->text ||
        pattern->children.size() != expression->children.size())
      return false;
    for (std::size_t i = 0; i < pattern->children.size(); ++i) {
      if (!matches(pattern->children[i], expression->children[i])) return false;
    }
    return true;
  }

  // In the order of the schema; nothing where one is missing.
  std::optional<std::vector<Expr>> arguments() const {
    std::vector<Expr> found;
    for (const Argument& argument : schema_.arguments) {
      const auto bound = bound_.find(argument.name);
      if (bound == bound_.end()) return std::nullopt;
      found.push_back(bound->second);
    }
    return found;
  }

 private:
  bool binds(const Argument& argument, const Expr& expression) {
    const bool leaf = expression->kind == ExprKind::Name || is_conj(expression);
    // Formulas have no conjugate of a number.
    const bool fits = argument.type.is_tensor()
                          ? leaf && is_tensor_(expression)
                          : !is_tensor_(expression) && !has_conjugate(expression);
    if (!fits) return false;
    const auto [bound, is_new] = bound_.emplace(argument.name, expression);
    return is_new || algebra::equal(bound->second, expression);
  }

  // Whether each of `patterns` matches another one of `terms`.
  bool match_terms(std::vector<Term> patterns, std::vector<Term> terms) {
    if (patterns.size() != terms.size()) return false;
    if (patterns.empty()) return true;
    const Term pattern = patterns.back();
    patterns.pop_back();
    const std::map<std::string, Expr> before = bound_;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const bool alike =
          pattern.coefficient == terms[i].coefficient &&
          (pattern.rest ? terms[i].rest && matches(pattern.rest, terms[i].rest) : !terms[i].rest);
      if (alike) {
        std::vector<Term> left = terms;
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
        if (match_terms(patterns, std::move(left))) return true;
      }
      bound_ = before;
    }
    return false;
  }

  const FunctionSchema& schema_;
  const Differentiation& rules_;
  const ElementOperators::IsTensor& is_tensor_;
  std::map<std::string, Expr> bound_;
};

// The place of each argument of a schema among the operands of a plain function of arguments, as in
// `polygamma(n, self)`; nothing for another expression.
std::optional<std::vector<std::size_t>> places_in(const Expr& expression,
                                                  const FunctionSchema& schema) {
  std::vector<std::size_t> places;
  if (expression->children.size() != schema.arguments.size()) return std::nullopt;
  for (const Argument& argument : schema.arguments) {
    const auto& operands = expression->children;
    const auto found = std::find_if(operands.begin(), operands.end(), [&](const Expr& operand) {
      return operand->kind == ExprKind::Name && operand->text == argument.name;
    });
    if (found == operands.end()) return std::nullopt;
    places.push_back(static_cast<std::size_t>(found - operands.begin()));
  }
  return places;
}

}  // namespace

std::vector<std::string> inexact_dtypes(const Operator& op) {
  std::vector<std::string> declared;
  for (const auto& [device, row] : op.dtypes)
    declared.insert(declared.end(), row.begin(), row.end());
  return inexact_of(declared);
}

bool has_complex(const std::vector<std::string>& dtypes) {
  return std::any_of(dtypes.begin(), dtypes.end(), [](const std::string& name) {
    return schema::find_dtype(name)->kind == DtypeKind::Complex;
  });
}

void ElementOperators::add(const Operator& op) {
  if (!op.pointwise || op.schema.returns.size() != 1) return;
  candidates_.push_back({op.schema, op.pointwise->tree, inexact_dtypes(op),
                         op.promote.value_or("common"), !op.checks.empty()});
}

void ElementOperators::add_model(const std::string& json) {
  const nlohmann::json model = nlohmann::json::parse(json);
  for (const auto& op : model.at("operators")) {
    if (op.at("pointwise").is_null()) continue;
    std::vector<std::string> declared;
    for (const auto& [device, row] : op.at("dtypes").items()) {
      for (const auto& dtype : row) declared.push_back(dtype);
    }
    candidates_.push_back(
        {schema::parse_schema(op.at("schema").get<std::string>()),
         schema::parse_expr(op.at("pointwise").at("text").get<std::string>()), inexact_of(declared),
         op.at("promote").is_null() ? "common" : op.at("promote"), !op.at("check").empty()});
  }
}

std::optional<ElementOperators::Call> ElementOperators::one_function(
    const ExprNode& node, const IsTensor& is_tensor) const {
  for (const Candidate& candidate : candidates_) {
    const ExprNode& root = *candidate.expression;
    const bool same =
        root.kind == node.kind && (root.kind == ExprKind::Select || root.text == node.text);
    if (!same) continue;
    const auto places = places_in(candidate.expression, candidate.schema);
    if (!places || places->size() != node.children.size()) continue;
    Call call{candidate.schema.name.base, {}};
    bool fits = true;
    for (std::size_t i = 0; i < places->size(); ++i) {
      const Expr& operand = node.children[(*places)[i]];
      fits = fits && candidate.schema.arguments[i].type.is_tensor() == is_tensor(operand);
      call.arguments.push_back(operand);
    }
    if (fits) return call;
  }
  return std::nullopt;
}

std::optional<ElementOperators::Call> ElementOperators::whole(
    const Expr& expression, const std::vector<std::string>& dtypes, const Differentiation& rules,
    const IsTensor& is_tensor) const {
  if (operations_of(expression) < 2) return std::nullopt;  // one call as it is
  for (const Candidate& candidate : candidates_) {
    // Its checks may refuse what a derivative has for its arguments.
    if (candidate.has_checks || candidate.promote != "common" ||
        operations_of(candidate.expression) < 2)
      continue;
    const bool knows_all = std::all_of(dtypes.begin(), dtypes.end(), [&](const std::string& dtype) {
      return contains(candidate.dtypes, dtype);
    });
    if (!knows_all) continue;
    Match match(candidate.schema, rules, is_tensor);
    if (!match.matches(rules.normal(candidate.expression), expression)) continue;
    if (auto arguments = match.arguments())
      return Call{candidate.schema.name.base, std::move(*arguments)};
  }
  return std::nullopt;
}

}  // namespace treadle::schemac
