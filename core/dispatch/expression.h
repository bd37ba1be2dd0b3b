// Expression: what an operator computes for one element, as a tree of constant data.
//
//   self + alpha * other      {Name self} {Name alpha} {Name other} {Binary * 1 2} {Binary + 0 3}
//
// The generator writes the trees of `pointwise:` and `reduce:`, so none is parsed at run time.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace treadle {

enum class ExpressionKind : int32_t {
  Name = 0,    // text: an argument, a constant such as inf, or a part of a reduction such as acc
  Int = 1,     // integer
  Float = 2,   // number
  Bool = 3,    // integer: 0 or 1
  Call = 4,    // text: the function; children: its arguments
  Binary = 5,  // text: the operator; children: left, right
  Unary = 6,   // text: the operator; children: the operand
  Select = 7,  // children: condition, value if true, value if false
};

inline constexpr int kMaxExpressionChildren = 4;

// Children have smaller indices than their parents; the last node is the root. Plug-ins are given
// these nodes as they are: the layout is that of treadle_node (plugin/treadle/plugin.h).
struct ExpressionNode {
  ExpressionKind kind;
  int32_t child_count;
  int32_t children[kMaxExpressionChildren];
  const char* text;  // "" where the kind has none
  int64_t integer;
  double number;
};

struct Expression {
  const ExpressionNode* nodes = nullptr;
  size_t count = 0;

  explicit operator bool() const { return count != 0; }
  const ExpressionNode& root() const { return nodes[count - 1]; }
  const ExpressionNode& child(const ExpressionNode& node, int i) const {
    return nodes[node.children[i]];
  }
};

// The parts of `reduce:`. Without `init` the first element takes its place; without `final` the
// result is `acc`.
struct ReduceExpressions {
  Expression init, step, combine, final;
};

}  // namespace treadle
