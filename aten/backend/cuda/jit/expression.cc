// Prints expression trees as C++.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/jit/expression.h"

#include "core/base/error.h"
#include "core/schema/expr.h"

namespace treadle::cuda {
namespace {

using schema::ExprKind;
using schema::ExprNode;

std::string write(const ExprNode& e);

std::string call(std::string_view function, const ExprNode& e) {
  std::string text = std::string(function) + "(";
  for (size_t i = 0; i < e.children.size(); ++i) text += (i ? ", " : "") + write(*e.children[i]);
  return text + ")";
}

std::string constant(const std::string& value) { return "constant<V>(" + value + ")"; }

// A literal of an integer keeps its digits only as one; kernels of floats take its double.
std::string name(const std::string& text) {
  if (text == "inf") return constant("kInf<double>");
  if (text == "nan") return constant("kNaN<double>");
  if (text == "pi") return constant("std::numbers::pi");
  if (text == "lowest" || text == "highest") return text + "<V>()";
  return variable(text);
}

std::string write(const ExprNode& e) {
  switch (e.kind) {
    case ExprKind::Name:
      return name(e.text);
    case ExprKind::Int:
    case ExprKind::Float:
      return constant(e.text);
    case ExprKind::Bool:
      return constant(e.text == "true" ? "1" : "0");
    case ExprKind::Call:
      return call(e.text, e);
    case ExprKind::Unary:
      if (e.text == "!") return call("logical_not", e);
      return "(-" + write(*e.children[0]) + ")";
    case ExprKind::Select:
      return call("where", e);
    case ExprKind::Binary:
      if (e.text == "&&") return call("logical_and", e);
      if (e.text == "||") return call("logical_or", e);
      if (e.text == "%") return call("remainder", e);
      return "(" + write(*e.children[0]) + " " + e.text + " " + write(*e.children[1]) + ")";
    default:
      fail<ErrorKind::Internal>("internal error, please report it: an expression of a kernel has ",
                                e.text);
  }
}

}  // namespace

std::string variable(std::string_view name) { return "v_" + std::string(name); }

std::string expression_text(std::string_view expression) {
  return write(*schema::parse_expr(expression));
}

std::string function_text(std::string_view name, const std::vector<std::string>& parameters,
                          std::string_view expression) {
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
