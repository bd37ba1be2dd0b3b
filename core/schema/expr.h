// Expressions: a small subset of C++ that serves the keys check, shape, pointwise, reduce and the
// derivative formulas.
//
//   self + alpha * other
//   weight.dim() == 4 && groups > 0
//   x > 0 ? x : exp(x) - 1
//   {self, other[0]}
//
// Precedence, from loosest to tightest: `?:`, `||`, `&&`, comparison, `+ -`, `* / %`, `- !`, then
// calls `f(a, b)`, methods `a.f(b)` and indexing `a[i]`. Two differences from C++: comparisons do
// not chain (a < b < c is an error), and expressions of integers, such as the indices of `reindex`,
// also have `a // b`, the division that rounds down.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/schema/diagnostic.h"

namespace treadle::schema {

enum class ExprKind {
  Name,    // text: the name
  Int,     // text: the digits
  Float,   // text: as written
  Bool,    // text: "true" or "false"
  String,  // text: the characters, without quotes and escapes
  None,    //
  Call,    // text: the function's name; children: the arguments
  Method,  // text: the method's name; children: the object, then the arguments
  Index,   // children: the object, the index
  Binary,  // text: the operator; children: left, right
  Unary,   // text: the operator; children: the operand
  Select,  // children: condition, value if true, value if false
  List,    // children: the items
};

struct ExprNode;
using Expr = std::shared_ptr<const ExprNode>;

struct ExprNode {
  ExprKind kind = ExprKind::None;
  std::string text;
  std::vector<Expr> children;
  std::size_t offset = 0;       // where it starts in the text
  std::size_t name_offset = 0;  // of a method: its name's position; otherwise the same as offset
  int depth = 1;  // of the tree below and including this node; bounded, so that recursion is safe
};

// Deeper trees are refused.
inline constexpr int kMaxExprDepth = 200;

// These throw SchemaError.
Expr parse_expr(const SourceText& source);
Expr parse_expr(std::string_view text, SourcePos start = {});
// The same for an expression whose values are integers, which may contain `//`.
Expr parse_integer_expr(const SourceText& source);

// The canonical text: parse_expr(print(e)) is the same tree as e.
std::string print(const Expr& expr);
std::string print(const ExprNode& node);

// Calls `visitor` for every node, parents before children, left to right.
void visit(const Expr& expr, const std::function<void(const ExprNode&)>& visitor);

}  // namespace treadle::schema
