// Expressions of elements as values to compute with. Each function simplifies what it builds, so
// that a derivative comes out as a person would write it:
//
//   product(number(1), x)                      x
//   difference(number(1), 1 - weight)          weight
//   choice(condition, x, x)                    x
//   product(x, condition ? 1 : 0)              condition ? x : 0
//   product(x, 1 / x)                          1
//
// Nothing else is simplified that could change more than the last digits of a value: products are
// not multiplied out, and a condition stays as it is.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/schema/expr.h"

namespace treadle::schemac::algebra {

using schema::Expr;

Expr node(schema::ExprKind kind, std::string text, std::vector<Expr> children = {});
Expr name(std::string text);
Expr number(double value);
Expr call(std::string function, std::vector<Expr> arguments);

Expr negative(const Expr& a);
Expr sum(const Expr& a, const Expr& b);
Expr difference(const Expr& a, const Expr& b);
Expr product(const Expr& a, const Expr& b);
Expr quotient(const Expr& a, const Expr& b);
Expr choice(const Expr& condition, const Expr& then, const Expr& otherwise);

// The value of a number, as in `2` and `-0.5`; nothing for another expression.
std::optional<double> value_of(const Expr& a);
bool is_number(const Expr& a, double value);
bool equal(const Expr& a, const Expr& b);

// A product taken apart: coefficient * factors / divisors.
struct Product {
  double coefficient = 1;
  std::vector<Expr> factors, divisors;
};
Product factors_of(const Expr& a);
Expr product_of(const Product& parts);

// A sum taken apart. The rest of a term is nullptr where the term is a number.
struct Term {
  double coefficient = 1;
  Expr rest;
};
std::vector<Term> terms_of(const Expr& a);
bool is_sum(const Expr& a);
bool is_product(const Expr& a);

// The same expression built anew, and so simplified, with other expressions for some of its names:
// those for which `value` returns one.
Expr rebuilt(const Expr& a, const std::function<Expr(const std::string&)>& value);
// With other parts in place of its children.
Expr with_children(const schema::ExprNode& a, std::vector<Expr> children);

}  // namespace treadle::schemac::algebra
