// Sums and products are taken apart into terms and factors, simplified, and put together again.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/derivatives/algebra.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

namespace treadle::schemac::algebra {
namespace {

using schema::ExprKind;
using schema::ExprNode;

bool is_binary(const Expr& a, const char* op) {
  return a->kind == ExprKind::Binary && a->text == op;
}
bool is_negative(const Expr& a) { return a->kind == ExprKind::Unary && a->text == "-"; }

// The shortest text that is read as the same number.
std::string text_of(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// A choice of which one value is a number swallows the factors beside it, so that `x * (c ? 1 : 0)`
// is `c ? x : 0`: one operation less, and 0 where x is infinite.
bool chooses_number(const Expr& a) {
  if (a->kind != ExprKind::Select) return false;
  return std::any_of(a->children.begin() + 1, a->children.end(), [](const Expr& value) {
    return value_of(value).has_value() || chooses_number(value);
  });
}

// A factor and a divisor that are the same leave nothing, so that the slope of `x * log(x)` is
// finite where x is 0.
Product times(Product a, const Product& b) {
  a.coefficient *= b.coefficient;
  a.factors.insert(a.factors.end(), b.factors.begin(), b.factors.end());
  a.divisors.insert(a.divisors.end(), b.divisors.begin(), b.divisors.end());
  for (std::size_t i = 0; i < a.divisors.size();) {
    const auto same = std::find_if(a.factors.begin(), a.factors.end(), [&](const Expr& factor) {
      return equal(factor, a.divisors[i]);
    });
    if (same == a.factors.end()) {
      ++i;
      continue;
    }
    a.factors.erase(same);
    a.divisors.erase(a.divisors.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return a;
}

// The sum of terms of which no two are alike, the first one positive.
Expr joined(const std::vector<Term>& terms) {
  Expr result;
  for (const Term& term : terms) {
    const double size = std::abs(term.coefficient);
    const Expr part = term.rest ? product(term.rest, number(size)) : number(size);
    if (!result) {
      result = part;
    } else {
      result = node(ExprKind::Binary, term.coefficient < 0 ? "-" : "+", {result, part});
    }
  }
  return result;
}

Expr sum_of(const std::vector<Term>& all) {
  std::vector<Term> terms;
  for (const Term& term : all) {
    const auto like = std::find_if(terms.begin(), terms.end(), [&](const Term& other) {
      return term.rest && other.rest ? equal(term.rest, other.rest) : term.rest == other.rest;
    });
    if (like == terms.end()) {
      terms.push_back(term);
    } else {
      like->coefficient += term.coefficient;
    }
  }
  std::erase_if(terms, [](const Term& term) { return term.coefficient == 0; });
  if (terms.empty()) return number(0);
  const auto first = std::find_if(terms.begin(), terms.end(),
                                  [](const Term& term) { return term.coefficient > 0; });
  if (first != terms.end()) {
    std::rotate(terms.begin(), first, first + 1);
    return joined(terms);
  }
  for (Term& term : terms) term.coefficient = -term.coefficient;
  const Expr positive = joined(terms);
  const std::optional<double> value = value_of(positive);
  return value ? number(-*value) : product_of({-1, {positive}, {}});
}

std::vector<Term> negated(std::vector<Term> terms) {
  for (Term& term : terms) term.coefficient = -term.coefficient;
  return terms;
}

}  // namespace

Expr node(ExprKind kind, std::string text, std::vector<Expr> children) {
  ExprNode made;
  made.kind = kind;
  made.text = std::move(text);
  made.children = std::move(children);
  for (const Expr& child : made.children) made.depth = std::max(made.depth, child->depth + 1);
  return std::make_shared<const ExprNode>(std::move(made));
}

Expr name(std::string text) { return node(ExprKind::Name, std::move(text)); }

Expr number(double value) {
  if (std::signbit(value) && value != 0) return node(ExprKind::Unary, "-", {number(-value)});
  const bool whole = value == std::floor(value) && value < 1e15;
  if (whole) return node(ExprKind::Int, std::to_string(static_cast<int64_t>(value)));
  return node(ExprKind::Float, text_of(value));
}

Expr call(std::string function, std::vector<Expr> arguments) {
  return node(ExprKind::Call, std::move(function), std::move(arguments));
}

std::optional<double> value_of(const Expr& a) {
  if (a->kind == ExprKind::Int || a->kind == ExprKind::Float) return std::stod(a->text);
  if (!is_negative(a)) return std::nullopt;
  const std::optional<double> size = value_of(a->children[0]);
  return size ? std::optional(-*size) : std::nullopt;
}

bool is_number(const Expr& a, double value) { return value_of(a) == value; }

bool equal(const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (a->kind != b->kind || a->text != b->text || a->children.size() != b->children.size())
    return false;
  return std::equal(a->children.begin(), a->children.end(), b->children.begin(), equal);
}

bool is_sum(const Expr& a) { return is_binary(a, "+") || is_binary(a, "-"); }

bool is_product(const Expr& a) { return is_binary(a, "*") || is_binary(a, "/") || is_negative(a); }

Product factors_of(const Expr& a) {
  if (const std::optional<double> value = value_of(a)) return {*value, {}, {}};
  if (is_negative(a)) {
    Product parts = factors_of(a->children[0]);
    parts.coefficient = -parts.coefficient;
    return parts;
  }
  if (is_binary(a, "*")) return times(factors_of(a->children[0]), factors_of(a->children[1]));
  if (is_binary(a, "/")) {
    Product parts = factors_of(a->children[0]);
    const std::optional<double> value = value_of(a->children[1]);
    if (value && *value != 0) {
      parts.coefficient /= *value;
    } else {
      // Whole, for its own factors may overflow where it does not.
      parts.divisors.push_back(a->children[1]);
    }
    return parts;
  }
  return {1, {a}, {}};
}

Expr product_of(const Product& parts) {
  if (parts.coefficient == 0) return number(0);
  for (std::size_t i = 0; i < parts.factors.size(); ++i) {
    const Expr factor = parts.factors[i];
    if (!chooses_number(factor)) continue;
    Product rest = parts;
    rest.factors.erase(rest.factors.begin() + static_cast<std::ptrdiff_t>(i));
    const auto scaled = [&](const Expr& value) {
      return product_of(times(rest, factors_of(value)));
    };
    return choice(factor->children[0], scaled(factor->children[1]), scaled(factor->children[2]));
  }
  const bool alone = parts.factors.size() == 1 && parts.divisors.empty();
  if (alone && parts.coefficient == -1 && is_sum(parts.factors[0])) {
    const std::vector<Term> terms = negated(terms_of(parts.factors[0]));
    const auto is_positive = [](const Term& term) { return term.coefficient > 0; };
    if (std::any_of(terms.begin(), terms.end(), is_positive)) return sum_of(terms);
  }
  const double size = std::abs(parts.coefficient);
  Expr result;
  for (const Expr& factor : parts.factors)
    result = result ? node(ExprKind::Binary, "*", {result, factor}) : factor;
  // A number that is no factor of its own makes no operation: 2 / x, -x.
  const bool leads = !result;
  if (leads) result = number(size);
  for (const Expr& divisor : parts.divisors)
    result = node(ExprKind::Binary, "/", {result, divisor});
  if (leads && parts.divisors.empty()) return number(parts.coefficient);
  if (!leads && size != 1) return node(ExprKind::Binary, "*", {result, number(parts.coefficient)});
  return parts.coefficient < 0 ? node(ExprKind::Unary, "-", {result}) : result;
}

std::vector<Term> terms_of(const Expr& a) {
  if (is_sum(a)) {
    std::vector<Term> terms = terms_of(a->children[0]);
    std::vector<Term> more = terms_of(a->children[1]);
    if (a->text == "-") more = negated(std::move(more));
    terms.insert(terms.end(), more.begin(), more.end());
    return terms;
  }
  Product parts = factors_of(a);
  const double coefficient = std::exchange(parts.coefficient, 1);
  if (parts.factors.empty() && parts.divisors.empty()) return {{coefficient, nullptr}};
  const bool alone = parts.factors.size() == 1 && parts.divisors.empty();
  if (alone && coefficient == -1 && is_sum(parts.factors[0]))
    return negated(terms_of(parts.factors[0]));
  return {{coefficient, product_of(parts)}};
}

Expr negative(const Expr& a) { return product(number(-1), a); }

Expr sum(const Expr& a, const Expr& b) {
  std::vector<Term> terms = terms_of(a);
  const std::vector<Term> more = terms_of(b);
  terms.insert(terms.end(), more.begin(), more.end());
  return sum_of(terms);
}

Expr difference(const Expr& a, const Expr& b) { return sum(a, negative(b)); }

Expr product(const Expr& a, const Expr& b) {
  return product_of(times(factors_of(a), factors_of(b)));
}

Expr quotient(const Expr& a, const Expr& b) {
  return product_of(factors_of(node(ExprKind::Binary, "/", {a, b})));
}

Expr choice(const Expr& condition, const Expr& then, const Expr& otherwise) {
  if (equal(then, otherwise)) return then;
  return node(ExprKind::Select, "", {condition, then, otherwise});
}

Expr with_children(const ExprNode& a, std::vector<Expr> children) {
  if (a.kind == ExprKind::Select || (a.kind == ExprKind::Call && a.text == "where"))
    return choice(children[0], children[1], children[2]);
  if (a.kind == ExprKind::Unary && a.text == "-") return negative(children[0]);
  if (a.kind == ExprKind::Binary) {
    if (a.text == "+") return sum(children[0], children[1]);
    if (a.text == "-") return difference(children[0], children[1]);
    if (a.text == "*") return product(children[0], children[1]);
    if (a.text == "/") return quotient(children[0], children[1]);
  }
  return node(a.kind, a.text, std::move(children));
}

Expr rebuilt(const Expr& a, const std::function<Expr(const std::string&)>& value) {
  if (a->kind == ExprKind::Name) {
    const Expr other = value(a->text);
    return other ? other : name(a->text);
  }
  if (const std::optional<double> known = value_of(a)) return number(*known);
  std::vector<Expr> children;
  for (const Expr& child : a->children) children.push_back(rebuilt(child, value));
  return with_children(*a, std::move(children));
}

}  // namespace treadle::schemac::algebra
