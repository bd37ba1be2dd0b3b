// Reads the expressions of an IndexMap, and finds the ranges of their values.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/index_map.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include "aten/backend/cpu/lru_cache.h"
#include "core/base/checked.h"
#include "core/schema/expr.h"

namespace treadle::shape {
namespace {

using schema::Expr;
using schema::ExprKind;
using schema::ExprNode;
using schema::SourceText;
using Kind = IndexNode::Kind;

constexpr size_t kMaxNodes = 1000;

// ---- texts --------------------------------------------------------------------------------------

struct Text {
  SourceText source;
  Expr tree;
};
using Texts = std::vector<Text>;

[[noreturn]] void fail_at(const char* op, const SourceText& source, size_t offset,
                          std::string message, std::string hint = "") {
  fail<ErrorKind::Value>(OpName(op),
                         source.diagnostic(offset, std::move(message), std::move(hint)).format());
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

Texts read_texts(const char* op, std::string_view indices) {
  Texts texts;
  while (!is_blank(indices)) {
    const size_t end = std::min(indices.find(';'), indices.size());
    const std::string_view text = indices.substr(0, end);
    indices.remove_prefix(std::min(end + 1, indices.size()));
    const std::string name = str("indices[", texts.size(), "]");
    check<ErrorKind::Value>(!is_blank(text), OpName(op), "expected an expression as ", name,
                            ", got an empty text");
    SourceText source(text, {name, 1, 1});
    try {
      Expr tree = schema::parse_integer_expr(source);
      texts.push_back({std::move(source), std::move(tree)});
    } catch (const schema::SchemaError& error) {
      fail<ErrorKind::Value>(OpName(op), error.what());
    }
  }
  return texts;
}

// Programs call an operator with the same few texts over and over.
std::shared_ptr<const Texts> texts_of(const char* op, std::string_view indices) {
  constexpr size_t kLongest = 4096;
  if (indices.size() > kLongest) return std::make_shared<const Texts>(read_texts(op, indices));
  thread_local cpu::LruCache<std::string, std::shared_ptr<const Texts>> kept(64);
  const std::string key(indices);
  if (const auto* found = kept.find(key)) return *found;
  return kept.put(key, std::make_shared<const Texts>(read_texts(op, indices)));
}

// ---- ranges -------------------------------------------------------------------------------------

// The least and the greatest of the values; nothing if one does not fit.
std::optional<ValueRange> range_of(std::initializer_list<Checked> values) {
  ValueRange range{INT64_MAX, INT64_MIN};
  for (const Checked& value : values) {
    if (!value.fits()) return std::nullopt;
    range.low = std::min(range.low, value.value());
    range.high = std::max(range.high, value.value());
  }
  return range;
}

Checked checked_quotient(int64_t a, int64_t b) {
  if (b == -1) return Checked(0) - a;
  return floor_quotient(a, b);
}

std::optional<ValueRange> range_of_remainder(const ValueRange& a, const ValueRange& b) {
  if (b.low <= 0) return ValueRange{b.low + 1, 0};
  // A dividend that is smaller than each divisor remains.
  if (a.low >= 0) return ValueRange{0, std::min(a.high, b.high - 1)};
  return ValueRange{0, b.high - 1};
}

std::optional<ValueRange> range_of(Kind kind, const std::optional<ValueRange>& left,
                                   const std::optional<ValueRange>& right) {
  if (!left || (kind != Kind::Negate && !right)) return std::nullopt;
  const ValueRange& a = *left;
  if (kind == Kind::Negate) return range_of({Checked(0) - a.high, Checked(0) - a.low});
  const ValueRange& b = *right;
  switch (kind) {
    case Kind::Add:
      return range_of({Checked(a.low) + b.low, Checked(a.high) + b.high});
    case Kind::Subtract:
      return range_of({Checked(a.low) - b.high, Checked(a.high) - b.low});
    case Kind::Multiply:
      return range_of({Checked(a.low) * b.low, Checked(a.low) * b.high, Checked(a.high) * b.low,
                       Checked(a.high) * b.high});
    default:
      break;
  }
  if (b.low <= 0 && b.high >= 0) return std::nullopt;
  if (kind == Kind::Modulo) return range_of_remainder(a, b);
  return range_of({checked_quotient(a.low, b.low), checked_quotient(a.low, b.high),
                   checked_quotient(a.high, b.low), checked_quotient(a.high, b.high)});
}

// ---- expressions --------------------------------------------------------------------------------

class Reader {
 public:
  Reader(const char* op, const Text& text, IntList loops, IntList extents)
      : op_(op), text_(text), loops_(loops), extents_(extents) {}

  IndexFunction read() {
    function_.root = add(*text_.tree);
    return std::move(function_);
  }

 private:
  [[noreturn]] void fail_here(const ExprNode& node, std::string message, std::string hint = "") {
    fail_at(op_, text_.source, node.offset, std::move(message), std::move(hint));
  }

  const IndexNode& node(int32_t number) const { return function_.nodes[number]; }

  int32_t add(IndexNode node, const ExprNode& from) {
    if (function_.nodes.size() == kMaxNodes)
      fail_here(from, str("expected an expression of at most ", kMaxNodes,
                          " names, numbers and operators"));
    function_.nodes.push_back(std::move(node));
    return static_cast<int32_t>(function_.nodes.size()) - 1;
  }

  int32_t constant(int64_t value, const ExprNode& from) {
    return add({.kind = Kind::Constant, .value = value, .range = ValueRange{value, value}}, from);
  }

  int32_t add(const ExprNode& from) {
    switch (from.kind) {
      case ExprKind::Int: {
        int64_t value = 0;
        std::from_chars(from.text.data(), from.text.data() + from.text.size(), value);
        return constant(value, from);
      }
      case ExprKind::Name:
        return name(from);
      case ExprKind::Unary:
        if (from.text == "-") return operation(Kind::Negate, from, add(*from.children[0]), -1);
        break;
      case ExprKind::Binary:
        if (const auto kind = kind_of(from.text)) {
          const int32_t left = add(*from.children[0]);
          const int32_t right = add(*from.children[1]);
          return operation(*kind, from, left, right);
        }
        break;
      default:
        break;
    }
    fail_here(from, "expected integers, names and + - * // %, got '" + schema::print(from) + "'");
  }

  static std::optional<Kind> kind_of(std::string_view op) {
    if (op == "+") return Kind::Add;
    if (op == "-") return Kind::Subtract;
    if (op == "*") return Kind::Multiply;
    if (op == "/" || op == "//") return Kind::Divide;
    if (op == "%") return Kind::Modulo;
    return std::nullopt;
  }

  // The number k of a name PREFIXk with k < count.
  static std::optional<int64_t> numbered(std::string_view name, std::string_view prefix,
                                         size_t count) {
    if (name.substr(0, prefix.size()) != prefix) return std::nullopt;
    name.remove_prefix(prefix.size());
    int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool whole = error == std::errc() && end == name.data() + name.size();
    const bool plain = whole && (name.size() == 1 || name[0] != '0');
    return plain && number < static_cast<int64_t>(count) ? std::optional(number) : std::nullopt;
  }

  int32_t name(const ExprNode& from) {
    if (const auto loop = numbered(from.text, "i", loops_.size())) {
      const int64_t last = std::max<int64_t>(loops_[*loop] - 1, 0);
      if (last == 0) return constant(0, from);
      return add({.kind = Kind::Loop,
                  .value = *loop,
                  .loop = static_cast<int>(*loop),
                  .range = ValueRange{0, last}},
                 from);
    }
    if (const auto d = numbered(from.text, "xshape", extents_.size()))
      return constant(extents_[*d], from);
    if (const auto d = numbered(from.text, "yshape", loops_.size()))
      return constant(loops_[*d], from);
    std::string known;
    const auto list = [&](const char* prefix, size_t count) {
      if (count == 0) return;
      known += str(known.empty() ? "the names are " : ", ", prefix, "0");
      if (count > 1) known += str(" to ", prefix, count - 1);
    };
    list("i", loops_.size());
    list("xshape", extents_.size());
    list("yshape", loops_.size());
    fail_here(from, "unknown name '" + from.text + "'", known);
  }

  int32_t operation(Kind kind, const ExprNode& from, int32_t left, int32_t right) {
    const bool divides = kind == Kind::Divide || kind == Kind::Modulo;
    const std::optional<ValueRange> a = node(left).range;
    std::optional<ValueRange> b;
    if (right >= 0) b = node(right).range;
    if (divides && b && b->low == 0 && b->high == 0)
      fail_here(*from.children[1], "expected a divisor other than 0, got '" +
                                       schema::print(from.children[1]) + "' = 0");
    const std::optional<ValueRange> range = range_of(kind, a, b);
    if (range && range->low == range->high) return constant(range->low, from);
    if (const auto simpler = without_division(kind, from, left, right)) return *simpler;
    IndexNode made{.kind = kind, .left = left, .right = right, .range = range};
    made.loop = node(left).loop;
    if (right >= 0 && node(right).loop != made.loop && node(right).loop != IndexNode::kNoLoop)
      made.loop = made.loop == IndexNode::kNoLoop ? node(right).loop : int{IndexNode::kManyLoops};
    if (divides && (!b || (b->low <= 0 && b->high >= 0)))
      made.divisor = schema::print(from.children[1]);
    return add(std::move(made), from);
  }

  // A remainder whose quotient is 0 everywhere is the dividend: `i0 % 8` of less than 9 indices.
  std::optional<int32_t> without_division(Kind kind, const ExprNode& from, int32_t left,
                                          int32_t right) {
    if (kind == Kind::Divide && node(right).kind == Kind::Constant && node(right).value == 1)
      return left;
    if (kind != Kind::Modulo || node(right).kind != Kind::Constant || !node(left).range)
      return std::nullopt;
    const ValueRange a = *node(left).range;
    const int64_t b = node(right).value;
    if (b <= 0 || floor_quotient(a.low, b) != floor_quotient(a.high, b)) return std::nullopt;
    const int64_t multiple = a.low - floor_remainder(a.low, b);
    return multiple == 0 ? left : operation(Kind::Subtract, from, left, constant(multiple, from));
  }

  const char* op_;
  const Text& text_;
  IntList loops_, extents_;
  IndexFunction function_;
};

// ---- sums ---------------------------------------------------------------------------------------

// The factor by which sums are smaller than 2^63, so that differences of them fit, too.
constexpr int64_t kMargin = 4;

// Tables of longer loops would be slow to make.
constexpr int64_t kLongestTable = int64_t{1} << 16;

// The value of a node that depends on one loop, at an index of it. Its range is known, so there is
// neither overflow nor a division by 0.
int64_t value_at(const IndexFunction& function, int32_t number, int64_t index) {
  const IndexNode& node = function.nodes[number];
  if (node.kind == Kind::Constant) return node.value;
  if (node.kind == Kind::Loop) return index;
  const int64_t a = value_at(function, node.left, index);
  if (node.kind == Kind::Negate) return -a;
  const int64_t b = value_at(function, node.right, index);
  switch (node.kind) {
    case Kind::Add:
      return a + b;
    case Kind::Subtract:
      return a - b;
    case Kind::Multiply:
      return a * b;
    case Kind::Divide:
      return floor_quotient(a, b);
    default:
      return floor_remainder(a, b);
  }
}

class Summing {
 public:
  Summing(const IndexFunction& function, IntList loops) : function_(function), loops_(loops) {
    sum_.factors.resize(loops.size());
    factors_.resize(loops.size(), Checked(0));
  }

  std::optional<IndexSum> sum(bool may_have_tables) {
    if (!function_.result().range || !add(function_.root, Checked(1))) return std::nullopt;
    if (!parts_.empty() && !may_have_tables) return std::nullopt;
    // The sum of the parts that are positive, and of those that are negative.
    Checked low = 0, high = 0;
    const auto count = [&](const ValueRange& range, Checked factor) {
      const auto part = range_of({Checked(range.low) * factor, Checked(range.high) * factor});
      if (!part) return false;
      low += std::min<int64_t>(part->low, 0);
      high += std::max<int64_t>(part->high, 0);
      return true;
    };
    if (!count({1, 1}, constant_)) return std::nullopt;
    for (size_t k = 0; k < factors_.size(); ++k) {
      if (!count({0, std::max<int64_t>(loops_[k] - 1, 0)}, factors_[k])) return std::nullopt;
      sum_.factors[k] = factors_[k].value();
    }
    for (const Part& part : parts_)
      if (!count(*function_.nodes[part.node].range, part.factor)) return std::nullopt;
    if (!(low * kMargin).fits() || !(high * kMargin).fits()) return std::nullopt;
    sum_.constant = constant_.value();
    for (const Part& part : parts_) make_table(part);
    return std::move(sum_);
  }

 private:
  struct Part {
    int32_t node;
    Checked factor;
  };

  // Adds `factor` times a node; false if it does not depend on one loop.
  bool add(int32_t number, Checked factor) {
    const IndexNode& node = function_.nodes[number];
    switch (node.kind) {
      case Kind::Constant:
        constant_ += factor * node.value;
        return constant_.fits();
      case Kind::Loop:
        factors_[node.value] += factor;
        return factors_[node.value].fits();
      case Kind::Negate:
        return add(node.left, Checked(0) - factor);
      case Kind::Add:
        return add(node.left, factor) && add(node.right, factor);
      case Kind::Subtract:
        return add(node.left, factor) && add(node.right, Checked(0) - factor);
      case Kind::Multiply:
        for (const auto& [one, other] :
             {std::pair(node.left, node.right), std::pair(node.right, node.left)}) {
          if (function_.nodes[one].kind == Kind::Constant)
            return add(other, factor * function_.nodes[one].value);
        }
        break;
      default:
        break;
    }
    if (node.loop < 0 || loops_[node.loop] > kLongestTable) return false;
    parts_.push_back({number, factor});
    return true;
  }

  void make_table(const Part& part) {
    const int loop = function_.nodes[part.node].loop;
    auto table = std::ranges::find(sum_.tables, loop, &IndexSum::Table::loop);
    if (table == sum_.tables.end()) {
      sum_.tables.push_back({loop, std::vector<int64_t>(loops_[loop], 0)});
      table = sum_.tables.end() - 1;
    }
    for (int64_t i = 0; i < loops_[loop]; ++i)
      table->values[i] += part.factor.value() * value_at(function_, part.node, i);
  }

  const IndexFunction& function_;
  IntList loops_;
  IndexSum sum_;
  Checked constant_ = 0;
  std::vector<Checked> factors_;
  std::vector<Part> parts_;
};

}  // namespace

IndexMap index_map(const char* op, std::string_view indices, IntList loops, IntList extents,
                   const char* target) {
  const std::shared_ptr<const Texts> texts = texts_of(op, indices);
  check<ErrorKind::Value>(texts->size() == extents.size(), OpName(op),
                          "expected one index expression for each of the ", extents.size(),
                          " dimensions of ", target, ", got ", texts->size());
  IndexMap map{DimVector(loops), DimVector(extents), {}};
  for (const Text& text : *texts) map.functions.push_back(Reader(op, text, loops, extents).read());
  return map;
}

std::optional<IndexSum> as_sum(const IndexFunction& function, IntList loops) {
  return Summing(function, loops).sum(true);
}

std::optional<IndexSum> as_linear_sum(const IndexFunction& function, IntList loops) {
  return Summing(function, loops).sum(false);
}

}  // namespace treadle::shape
