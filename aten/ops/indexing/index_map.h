// IndexMap: which element of one tensor belongs to each element of another, as expressions of the
// second one's indices. It is the argument `indices` of reindex and reindex_reduce.
//
//   index_map("reindex", "i0; i1 + i2 - 1;", {2, 4, 3}, {2, 4})
//
// maps element (i0, i1, i2) of the loops (2, 4, 3) to element (i0, i1 + i2 - 1) of a target of the
// extents (2, 4), where that is inside. An expression consists of the names below, integers,
// + - * // % and parentheses. `/` is the same as `//`. Both round down, as in Python, and % is what
// they leave.
//
//   i0, i1, ...            the indices of the loops
//   yshape0, yshape1, ...  the extents of the loops
//   xshape0, xshape1, ...  the extents of the target
//
// Arithmetic is that of 64 bits. If a value on the way to an index does not fit, the element is
// outside. The range of each value follows from the ranges of its parts, so a map knows where
// neither overflow nor a division by 0 can occur.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace treadle::shape {

// The values from `low` to `high`, both inclusive.
struct ValueRange {
  int64_t low, high;
};

// A part of an expression. Operands stand before the operators that use them.
struct IndexNode {
  enum Kind : uint8_t { Constant, Loop, Add, Subtract, Multiply, Divide, Modulo, Negate };
  Kind kind;
  int32_t left = -1, right = -1;  // numbers of the operands
  int64_t value = 0;              // of a constant; the number of a loop
  // The only loop that the value depends on.
  static constexpr int kNoLoop = -1, kManyLoops = -2;
  int loop = kNoLoop;
  std::string divisor{};  // the text of a divisor that may be 0
  // Absent if the value, or one that it is computed from, may not fit into 64 bits or may be
  // divided by 0.
  std::optional<ValueRange> range{};
};

// The index along one dimension of the target.
struct IndexFunction {
  std::vector<IndexNode> nodes;
  int32_t root = 0;

  const IndexNode& result() const { return nodes[root]; }
  // Whether every value is known to be in [0, extent).
  bool is_inside(int64_t extent) const {
    return result().range && result().range->low >= 0 && result().range->high < extent;
  }
};

struct IndexMap {
  DimVector loops, extents;
  std::vector<IndexFunction> functions;  // one for each extent
};

// `indices` are expressions, each followed by ';'; the last one may lack it. ValueError for
// expressions that are not as described above, for a division by the constant 0, and when there is
// not one expression for each extent; `target` names the tensor in that message.
IndexMap index_map(const char* op, std::string_view indices, IntList loops, IntList extents,
                   const char* target);

// Quotient that rounds down, and its remainder; the divisor is not 0. No quotient overflows but
// that of the smallest number by -1, which wraps.
constexpr int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
constexpr int64_t floor_remainder(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// An index along one dimension as a sum of parts that depend on one loop each:
// constant + factors[0] * i0 + ... + tables[0].values[i_loop] + ... A loop has at most one table.
struct IndexSum {
  struct Table {
    int loop;
    std::vector<int64_t> values;  // for each index of the loop
  };
  int64_t constant = 0;
  DimVector factors;  // one for each loop
  std::vector<Table> tables;

  const Table* table_of(int loop) const {
    const auto found = std::ranges::find(tables, loop, &Table::loop);
    return found == tables.end() ? nullptr : &*found;
  }
};

// The sum if the function is one. The sum of any of its parts is in [-2^61, 2^61].
std::optional<IndexSum> as_sum(const IndexFunction& function, IntList loops);
// The same if it has no tables.
std::optional<IndexSum> as_linear_sum(const IndexFunction& function, IntList loops);

}  // namespace treadle::shape
