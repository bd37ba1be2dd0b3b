// Runs the operations of an IndexFunction over blocks.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/cpu/index_program.h"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace treadle::cpu {

using shape::IndexNode;

namespace {

// An operand that is the same for all elements, and one with a value for each. Both are given to
// the loops below, which are compiled for each pair.
struct One {
  int64_t value;
  int64_t operator[](int64_t) const { return value; }
};

// Quotients of numbers below 2^53 are exact enough in double: two integers whose quotient is no
// integer differ from the next one by at least 1 / divisor. Division of doubles is faster.
constexpr int64_t kExactInDouble = int64_t{1} << 53;

bool is_small(const std::optional<shape::ValueRange>& range) {
  return range && range->low > -kExactInDouble && range->high < kExactInDouble;
}

int64_t small_floor_quotient(int64_t a, int64_t b) {
  const int64_t quotient = static_cast<int64_t>(static_cast<double>(a) / static_cast<double>(b));
  const int64_t rest = a - quotient * b;
  return quotient - (rest != 0 && (rest < 0) != (b < 0));
}

// A divisor of 2^k takes a shift.
template <class B>
bool is_power_of_two(const B& divisor) {
  if constexpr (std::is_same_v<B, One>)
    return divisor.value > 0 && (divisor.value & (divisor.value - 1)) == 0;
  return false;
}

// Results wrap where they overflow, and overflows[j] says so.
template <class A, class B>
void operate(IndexNode::Kind kind, bool safe, bool small, A a, B b, int64_t count, int64_t* to,
             bool* overflows) {
  const auto each = [&](auto&& f) {
    for (int64_t j = 0; j < count; ++j) to[j] = f(a[j], b[j]);
  };
  const auto each_checked = [&](auto&& f) {
    for (int64_t j = 0; j < count; ++j) {
      if (f(a[j], b[j], &to[j])) overflows[j] = true;
    }
  };
  switch (kind) {
    case IndexNode::Add:
      if (safe) return each([](int64_t x, int64_t y) { return x + y; });
      return each_checked(
          [](int64_t x, int64_t y, int64_t* r) { return __builtin_add_overflow(x, y, r); });
    case IndexNode::Subtract:
      if (safe) return each([](int64_t x, int64_t y) { return x - y; });
      return each_checked(
          [](int64_t x, int64_t y, int64_t* r) { return __builtin_sub_overflow(x, y, r); });
    case IndexNode::Multiply:
      if (safe) return each([](int64_t x, int64_t y) { return x * y; });
      return each_checked(
          [](int64_t x, int64_t y, int64_t* r) { return __builtin_mul_overflow(x, y, r); });
    case IndexNode::Divide:
      if (is_power_of_two(b)) {
        const int shift = std::countr_zero(static_cast<uint64_t>(b[0]));
        return each([=](int64_t x, int64_t) { return x >> shift; });
      }
      if (small) return each(&small_floor_quotient);
      return each_checked([](int64_t x, int64_t y, int64_t* r) {
        *r = y == 0 ? 0 : shape::floor_quotient(x, y);
        return x == INT64_MIN && y == -1;
      });
    default:
      if (is_power_of_two(b)) return each([](int64_t x, int64_t y) { return x & (y - 1); });
      if (small)
        return each([](int64_t x, int64_t y) { return x - small_floor_quotient(x, y) * y; });
      return each([](int64_t x, int64_t y) { return y == 0 ? 0 : shape::floor_remainder(x, y); });
  }
}

}  // namespace

IndexProgram::IndexProgram(const char* op, const shape::IndexFunction& function, IntList loops)
    : op_(op), loops_(loops) {
  std::vector<bool> needed(function.nodes.size());
  needed[function.root] = true;
  for (int32_t n = function.root; n >= 0; --n) {
    if (!needed[n]) continue;
    for (const int32_t operand : {function.nodes[n].left, function.nodes[n].right})
      if (operand >= 0) needed[operand] = true;
  }
  std::vector<int32_t> place(function.nodes.size(), -1);
  for (int32_t n = 0; n <= function.root; ++n) {
    if (!needed[n]) continue;
    place[n] = static_cast<int32_t>(nodes_.size());
    nodes_.push_back(function.nodes[n]);
    for (int32_t* operand : {&nodes_.back().left, &nodes_.back().right})
      if (*operand >= 0) *operand = place[*operand];
  }
}

const int64_t* IndexProgram::run(int64_t first, int64_t count, bool* overflows,
                                 Scratch& scratch) const {
  scratch.values.resize(nodes_.size() * kBlock);
  const auto values = [&](int32_t node) { return scratch.values.data() + node * kBlock; };
  for (int32_t n = 0; n < static_cast<int32_t>(nodes_.size()); ++n) {
    const IndexNode& node = nodes_[n];
    int64_t* const to = values(n);
    const bool is_root = n + 1 == static_cast<int32_t>(nodes_.size());
    if (node.kind == IndexNode::Constant) {
      if (is_root) std::fill(to, to + count, node.value);  // as an operand it needs no block
      continue;
    }
    if (node.kind == IndexNode::Loop) {
      fill_loop(node.loop, first, count, to);
      continue;
    }
    const bool negates = node.kind == IndexNode::Negate;
    const IndexNode zero{.kind = IndexNode::Constant};
    const IndexNode& a = negates ? zero : nodes_[node.left];
    const int32_t right = negates ? node.left : node.right;
    const IndexNode& b = nodes_[right];
    const IndexNode::Kind kind = negates ? IndexNode::Subtract : node.kind;
    const bool safe = node.range.has_value();
    const bool small = safe && is_small(a.range) && is_small(b.range);
    if (!node.divisor.empty()) check_divisors(node.divisor, values(right), first, count, overflows);
    const bool one_a = a.kind == IndexNode::Constant, one_b = b.kind == IndexNode::Constant;
    if (one_a && one_b) {
      operate(kind, safe, small, One{a.value}, One{b.value}, count, to, overflows);
    } else if (one_a) {
      operate(kind, safe, small, One{a.value}, values(right), count, to, overflows);
    } else if (one_b) {
      operate(kind, safe, small, values(node.left), One{b.value}, count, to, overflows);
    } else {
      operate(kind, safe, small, values(node.left), values(right), count, to, overflows);
    }
  }
  return values(static_cast<int32_t>(nodes_.size()) - 1);
}

void IndexProgram::fill_loop(int loop, int64_t first, int64_t count, int64_t* to) const {
  const int64_t extent = loops_[loop];
  const int64_t inner = product(IntList(loops_).slice(loop + 1));
  int64_t index = first / inner % extent;
  if (inner == 1) {
    for (int64_t j = 0; j < count; index = 0) {
      const int64_t end = std::min(count, j + extent - index);
      for (const int64_t shift = index - j; j < end; ++j) to[j] = j + shift;
    }
    return;
  }
  int64_t rest = inner - first % inner;  // elements with this index
  for (int64_t j = 0; j < count;) {
    const int64_t end = std::min(count, j + rest);
    std::fill(to + j, to + end, index);
    j = end;
    rest = inner;
    if (++index == extent) index = 0;
  }
}

void IndexProgram::check_divisors(const std::string& divisor, const int64_t* values, int64_t first,
                                  int64_t count, const bool* overflows) const {
  for (int64_t j = 0; j < count; ++j) {
    if (values[j] != 0 || overflows[j]) continue;
    std::string where;
    const DimVector at = unravel(loops_, first + j);
    for (size_t k = 0; k < at.size(); ++k) where += str(k ? ", i" : "i", k, " = ", at[k]);
    fail<ErrorKind::Value>(OpName(op_), "expected a divisor other than 0, got '", divisor,
                           "' = 0 at ", where);
  }
}

}  // namespace treadle::cpu
