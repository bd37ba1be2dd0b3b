// Prints expression trees as C++.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/jit/expression.h"

#include "core/base/error.h"

namespace treadle::cuda {
namespace {

std::string constant(const std::string& value) { return "constant<V>(" + value + ")"; }

// A literal of an integer keeps its digits only as one; kernels of floats take its double.
std::string name(const std::string& text) {
  if (text == "inf") return constant("kInf<double>");
  if (text == "nan") return constant("kNaN<double>");
  if (text == "pi") return constant("std::numbers::pi");
  if (text == "lowest" || text == "highest") return text + "<V>()";
  return variable(text);
}

class Writer {
 public:
  explicit Writer(const Expression& e) : e_(e) {}

  std::string write(const ExpressionNode& node) const {
    const std::string_view text = node.text;
    switch (node.kind) {
      case ExpressionKind::Name:
        return name(node.text);
      case ExpressionKind::Int:
      case ExpressionKind::Float:
        return constant(node.text);
      case ExpressionKind::Bool:
        return constant(node.integer ? "1" : "0");
      case ExpressionKind::Call:
        return call(text, node);
      case ExpressionKind::Unary:
        if (text == "!") return call("logical_not", node);
        return "(-" + child(node, 0) + ")";
      case ExpressionKind::Select:
        return call("where", node);
      case ExpressionKind::Binary:
        if (text == "&&") return call("logical_and", node);
        if (text == "||") return call("logical_or", node);
        if (text == "%") return call("remainder", node);
        return "(" + child(node, 0) + " " + node.text + " " + child(node, 1) + ")";
    }
    fail<ErrorKind::Internal>("internal error, please report it: an expression of a kernel has ",
                              node.text);
  }

 private:
  std::string child(const ExpressionNode& node, int i) const { return write(e_.child(node, i)); }
  std::string call(std::string_view function, const ExpressionNode& node) const {
    std::string text = std::string(function) + "(";
    for (int i = 0; i < node.child_count; ++i) text += (i ? ", " : "") + child(node, i);
    return text + ")";
  }

  const Expression& e_;
};

}  // namespace

std::string variable(std::string_view name) { return "v_" + std::string(name); }

std::string expression_text(const Expression& expression) {
  return Writer(expression).write(expression.root());
}

std::string function_text(std::string_view name, const std::vector<std::string>& parameters,
                          const Expression& expression) {
  std::string text = "  template <class V>\n  static auto " + std::string(name) + "(";
  for (size_t i = 0; i < parameters.size(); ++i)
    text += (i ? ", [[maybe_unused]] V " : "[[maybe_unused]] V ") + variable(parameters[i]);
  return text + ") {\n    return " + expression_text(expression) + ";\n  }\n";
}

const char* type_name(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Bool:
      return "bool";
    case ScalarType::UInt8:
      return "uint8_t";
    case ScalarType::UInt16:
      return "uint16_t";
    case ScalarType::UInt32:
      return "uint32_t";
    case ScalarType::UInt64:
      return "uint64_t";
    case ScalarType::Int8:
      return "int8_t";
    case ScalarType::Int16:
      return "int16_t";
    case ScalarType::Int32:
      return "int32_t";
    case ScalarType::Int64:
      return "int64_t";
    case ScalarType::Float16:
      return "treadle::Half";
    case ScalarType::BFloat16:
      return "treadle::BFloat16";
    case ScalarType::Float32:
      return "float";
    case ScalarType::Float64:
      return "double";
    case ScalarType::Complex64:
      return "std::complex<float>";
    case ScalarType::Complex128:
      return "std::complex<double>";
    default:
      fail<ErrorKind::Internal>("internal error, please report it: a dtype without a type");
  }
}

}  // namespace treadle::cuda
