// expression_source.hpp: the trees of generated kernels as C-like source text, for backends whose
// device has a compiler (OpenCL C, CUDA, Metal, C). Header-only C++17, over treadle/plugin.h alone.
//
//   treadle::plugin::ExpressionDialect dialect;                    // the names that C uses
//   treadle::plugin::ExpressionText sum = expression_text(call->body, call->compute, dialect);
//   // self + alpha * other in float32:  (v_self + (v_alpha * v_other))
//   // in int32:                         tr_add_i32(v_self, tr_mul_i32(v_alpha, v_other))
//
// The text is one expression without side effects. Operands and numbers are variables `v_NAME` of
// the compute type. An operation that C lacks or leaves undefined becomes a call of a function that
// the backend's prelude defines. Its name is `tr_FUNCTION_SUFFIX`. It takes the function's
// arguments in the compute type, and returns that type, or int for truth values
// (is_truth_function). Arithmetic of integers, bool and complex numbers also becomes calls: add sub
// mul div neg, and eq ne for complex ones. docs/functions-of-expressions.md defines each function.
// 16-bit floats compute in float32.
//
// Errors: std::invalid_argument for a malformed tree (a child that follows its parent, or a kind
// unknown to this header).
#pragma once

#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "treadle/plugin.h"

#pragma GCC visibility push(hidden)

namespace treadle::plugin {

inline bool is_complex_dtype(treadle_dtype t) {
  return t == TREADLE_COMPLEX64 || t == TREADLE_COMPLEX128;
}
inline bool is_floating_dtype(treadle_dtype t) {
  return t >= TREADLE_FLOAT16 && t <= TREADLE_FLOAT64;
}
inline bool is_integer_dtype(treadle_dtype t) { return t >= TREADLE_UINT8 && t <= TREADLE_INT64; }
inline bool is_signed_dtype(treadle_dtype t) { return t >= TREADLE_INT8 && t <= TREADLE_INT64; }

// The dtype in which values of `t` are computed.
inline treadle_dtype compute_dtype(treadle_dtype t) {
  return t == TREADLE_FLOAT16 || t == TREADLE_BFLOAT16 ? treadle_dtype(TREADLE_FLOAT32) : t;
}

// "f32": the suffix of the names of functions for a dtype.
inline const char* dtype_suffix(treadle_dtype t) {
  static const char* const names[] = {"b",   "u8",  "u16",  "u32", "u64", "i8",  "i16", "i32",
                                      "i64", "f16", "bf16", "f32", "f64", "c64", "c128"};
  if (t < 0 || t > TREADLE_COMPLEX128) throw std::invalid_argument("unknown dtype");
  return names[t];
}

// Whether the function's result is a truth value: 0 or 1, an int in the text.
inline bool is_truth_function(const char* name) {
  static const std::set<std::string> names = {"isnan",      "isinf",       "isfinite",
                                              "signbit",    "cast_bool",   "logical_and",
                                              "logical_or", "logical_xor", "logical_not"};
  return names.count(name) != 0;
}

// The syntax of a language for the parts of expressions. The members are right for C99 and OpenCL
// C. A backend overrides those that its language writes differently.
class ExpressionDialect {
 public:
  virtual ~ExpressionDialect() = default;

  // The type of values; for complex values a pair. bool is computed in bytes that are 0 or 1.
  virtual std::string type(treadle_dtype t) const {
    static const char* const names[] = {"uchar", "uchar", "ushort", "uint",   "ulong",
                                        "char",  "short", "int",    "long",   "float",
                                        "float", "float", "double", "float2", "double2"};
    return names[t];
  }
  // An operand or a number of the call.
  virtual std::string variable(const char* name) const { return std::string("v_") + name; }
  // A function of the prelude.
  virtual std::string call(const char* function, treadle_dtype compute,
                           const std::vector<std::string>& arguments) const {
    std::string text = std::string("tr_") + function + "_" + dtype_suffix(compute) + "(";
    for (size_t i = 0; i < arguments.size(); ++i) text += (i ? ", " : "") + arguments[i];
    return text + ")";
  }
  // A real number as a complex one.
  virtual std::string pair(const std::string& real, treadle_dtype compute) const {
    const bool wide = compute == TREADLE_COMPLEX128;
    return "((" + type(compute) + ")(" + real + ", " + (wide ? "0.0" : "0.0f") + "))";
  }
  virtual std::string integer(int64_t value, treadle_dtype t) const {
    if (t == TREADLE_BOOL) return value != 0 ? "((uchar)1)" : "((uchar)0)";
    // The lowest number of 64 bits has no literal.
    const std::string digits =
        value == INT64_MIN ? "(-9223372036854775807L - 1)" : std::to_string(value) + "L";
    return "((" + type(t) + ")" + digits + ")";
  }
  virtual std::string floating(double value, treadle_dtype t) const {
    const bool wide = t == TREADLE_FLOAT64;
    if (std::isnan(value)) return wide ? "((double)NAN)" : "NAN";
    if (std::isinf(value))
      return std::string(value < 0 ? "(-" : "(") + (wide ? "(double)" : "") + "INFINITY)";
    char digits[40];
    std::snprintf(digits, sizeof digits, wide ? "%.17g" : "%.9g", value);
    std::string text = digits;
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    if (!wide) text += "f";
    return value < 0 || std::signbit(value) ? "(" + text + ")" : text;
  }
  // The ends of a dtype's range: infinities if it has any.
  virtual std::string end_of_range(bool highest, treadle_dtype t) const {
    if (is_floating_dtype(t)) return floating(highest ? INFINITY : -INFINITY, t);
    if (t == TREADLE_BOOL) return integer(highest, t);
    if (!is_signed_dtype(t))
      return highest ? "((" + type(t) + ")~(" + type(t) + ")0)" : integer(0, t);
    const int bits = t == TREADLE_INT8 ? 8 : t == TREADLE_INT16 ? 16 : t == TREADLE_INT32 ? 32 : 64;
    const int64_t top = bits == 64 ? INT64_MAX : (int64_t(1) << (bits - 1)) - 1;
    return integer(highest ? top : -top - 1, t);
  }

  // A literal of the tree, in the compute dtype. A fraction is cut off for integers.
  std::string literal(double value, treadle_dtype t) const {
    if (is_complex_dtype(t))
      return pair(floating(value, t == TREADLE_COMPLEX64 ? TREADLE_FLOAT32 : TREADLE_FLOAT64), t);
    if (is_floating_dtype(t)) return floating(value, t);
    if (t == TREADLE_BOOL) return integer(value != 0, t);
    const bool fits = value > -9223372036854775808.0 && value < 9223372036854775808.0;
    return integer(fits ? static_cast<int64_t>(value) : 0, t);
  }
};

// The text of an expression. If `truth`, it is an int that is 0 or 1, else a value of the compute
// type.
struct ExpressionText {
  std::string text;
  bool truth = false;
};

namespace detail {

class ExpressionWriter {
 public:
  ExpressionWriter(const treadle_expression& expression, treadle_dtype compute,
                   const ExpressionDialect& dialect)
      : expression_(expression), compute_(compute_dtype(compute)), dialect_(dialect) {}

  ExpressionText write(size_t index) const {
    const treadle_node& node = expression_.nodes[index];
    std::vector<ExpressionText> children;
    for (int32_t i = 0; i < node.child_count; ++i) {
      const int32_t child = node.children[i];
      if (child < 0 || static_cast<size_t>(child) >= index)
        throw std::invalid_argument("expression: expected children before their parent");
      children.push_back(write(static_cast<size_t>(child)));
    }
    switch (node.kind) {
      case TREADLE_NODE_NAME:
        return {name(node.text), false};
      case TREADLE_NODE_INT:
        // An integer beyond 2^53 would lose digits as a double.
        if (is_integer_dtype(compute_)) return {dialect_.integer(node.integer, compute_), false};
        return {dialect_.literal(static_cast<double>(node.integer), compute_), false};
      case TREADLE_NODE_BOOL:
        return {node.integer != 0 ? "1" : "0", true};
      case TREADLE_NODE_FLOAT:
        return {dialect_.literal(node.number, compute_), false};
      case TREADLE_NODE_CALL:
        return call(node.text, children);
      case TREADLE_NODE_BINARY:
        require(children, 2);
        return binary(node.text, children[0], children[1]);
      case TREADLE_NODE_UNARY:
        require(children, 1);
        if (!std::strcmp(node.text, "!")) return {"(!" + truth(children[0]) + ")", true};
        if (native()) return {"(-" + number(children[0]) + ")", false};
        return {dialect_.call("neg", compute_, {number(children[0])}), false};
      case TREADLE_NODE_SELECT:
        require(children, 3);
        return select(children[0], children[1], children[2]);
      default:
        throw std::invalid_argument("expression: unknown kind of node");
    }
  }

  // The text as a value of the compute type.
  std::string number(const ExpressionText& e) const {
    if (!e.truth) return e.text;
    if (!is_complex_dtype(compute_)) return "((" + dialect_.type(compute_) + ")" + e.text + ")";
    const auto part = compute_ == TREADLE_COMPLEX64 ? TREADLE_FLOAT32 : TREADLE_FLOAT64;
    return dialect_.pair("(" + dialect_.type(part) + ")" + e.text, compute_);
  }

 private:
  static void require(const std::vector<ExpressionText>& children, size_t count) {
    if (children.size() != count)
      throw std::invalid_argument("expression: a node has a wrong number of children");
  }
  // Whether the type's C operators are those of expressions.
  bool native() const { return is_floating_dtype(compute_); }

  std::string name(const char* text) const {
    if (!std::strcmp(text, "inf")) return dialect_.literal(INFINITY, compute_);
    if (!std::strcmp(text, "nan")) return dialect_.literal(NAN, compute_);
    if (!std::strcmp(text, "pi")) return dialect_.literal(3.14159265358979323846, compute_);
    if (!std::strcmp(text, "lowest")) return dialect_.end_of_range(false, compute_);
    if (!std::strcmp(text, "highest")) return dialect_.end_of_range(true, compute_);
    return dialect_.variable(text);
  }
  std::string truth(const ExpressionText& e) const {
    if (e.truth) return e.text;
    if (is_complex_dtype(compute_)) return dialect_.call("cast_bool", compute_, {e.text});
    return "(" + e.text + " != 0)";
  }
  ExpressionText select(const ExpressionText& condition, const ExpressionText& yes,
                        const ExpressionText& no) const {
    if (yes.truth && no.truth)
      return {"(" + truth(condition) + " ? " + yes.text + " : " + no.text + ")", true};
    return {"(" + truth(condition) + " ? " + number(yes) + " : " + number(no) + ")", false};
  }
  ExpressionText binary(const char* op, const ExpressionText& a, const ExpressionText& b) const {
    if (!std::strcmp(op, "&&") || !std::strcmp(op, "||"))
      return {"(" + truth(a) + " " + op + " " + truth(b) + ")", true};
    const bool equality = !std::strcmp(op, "==") || !std::strcmp(op, "!=");
    if (equality || op[0] == '<' || op[0] == '>') {
      if (!is_complex_dtype(compute_))
        return {"(" + number(a) + " " + op + " " + number(b) + ")", true};
      if (!equality) throw std::invalid_argument("expression: complex numbers have no order");
      return {dialect_.call(op[0] == '=' ? "eq" : "ne", compute_, {number(a), number(b)}), true};
    }
    if (op[0] == '%') return {dialect_.call("remainder", compute_, {number(a), number(b)}), false};
    const char* function = op[0] == '+'   ? "add"
                           : op[0] == '-' ? "sub"
                           : op[0] == '*' ? "mul"
                           : op[0] == '/' ? "div"
                                          : nullptr;
    if (!function) throw std::invalid_argument("expression: unknown operator");
    if (native()) return {"(" + number(a) + " " + op + " " + number(b) + ")", false};
    return {dialect_.call(function, compute_, {number(a), number(b)}), false};
  }
  ExpressionText call(const std::string& function,
                      const std::vector<ExpressionText>& children) const {
    if (function == "cast_bool" || function == "logical_not") {
      require(children, 1);
      return {function == "cast_bool" ? truth(children[0]) : "(!" + truth(children[0]) + ")", true};
    }
    if (function.compare(0, 8, "logical_") == 0) {
      require(children, 2);
      const char* op = function == "logical_and"  ? " && "
                       : function == "logical_or" ? " || "
                                                  : " != ";
      return {"(" + truth(children[0]) + op + truth(children[1]) + ")", true};
    }
    if (function == "where") {
      require(children, 3);
      return select(children[0], children[1], children[2]);
    }
    std::vector<std::string> arguments;
    for (const ExpressionText& child : children) arguments.push_back(number(child));
    if (function == "softplus") {  // softplus(x, beta = 1, threshold = 20)
      if (arguments.size() < 2) arguments.push_back(dialect_.literal(1, compute_));
      if (arguments.size() < 3) arguments.push_back(dialect_.literal(20, compute_));
    }
    return {dialect_.call(function.c_str(), compute_, arguments),
            is_truth_function(function.c_str())};
  }

  const treadle_expression& expression_;
  treadle_dtype compute_;
  const ExpressionDialect& dialect_;
};

}  // namespace detail

// The expression in `compute`; see the opening comment of this file.
inline ExpressionText expression_text(const treadle_expression& expression, treadle_dtype compute,
                                      const ExpressionDialect& dialect) {
  if (expression.count == 0) throw std::invalid_argument("expression: expected a node, got none");
  return detail::ExpressionWriter(expression, compute, dialect).write(expression.count - 1);
}

// The same as a value of the compute type: a truth value becomes 0 or 1.
inline std::string expression_number(const treadle_expression& expression, treadle_dtype compute,
                                     const ExpressionDialect& dialect) {
  const detail::ExpressionWriter writer(expression, compute, dialect);
  if (expression.count == 0) throw std::invalid_argument("expression: expected a node, got none");
  return writer.number(writer.write(expression.count - 1));
}

// The functions that the expression calls, "%" for the remainder. A backend must have them, or
// decline.
inline std::set<std::string> functions_of(const treadle_expression& expression) {
  std::set<std::string> names;
  for (size_t i = 0; i < expression.count; ++i) {
    const treadle_node& node = expression.nodes[i];
    if (node.kind == TREADLE_NODE_CALL) names.insert(node.text);
    if (node.kind == TREADLE_NODE_BINARY && node.text[0] == '%') names.insert("remainder");
  }
  return names;
}

}  // namespace treadle::plugin

#pragma GCC visibility pop
