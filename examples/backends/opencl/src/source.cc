// The pieces of program text, from cl/*.cl.
//
// SPDX-License-Identifier: Apache-2.0
#include "source.h"

#include <set>

namespace treadle_opencl {

namespace plugin = treadle::plugin;

namespace {

constexpr const char* kCommon =
#include "../cl/common.cl"
    ;
constexpr const char* kFloats =
#include "../cl/floats.cl"
    ;
constexpr const char* kIntegers =
#include "../cl/integers.cl"
    ;
constexpr const char* kBools =
#include "../cl/bools.cl"
    ;
constexpr const char* kWhole =
#include "../cl/whole.cl"
    ;
constexpr const char* kComplex =
#include "../cl/complex.cl"
    ;

// The functions that a prelude defines: every FN(name) that follows a result type.
std::set<std::string> defined_in(std::initializer_list<const char*> texts) {
  std::set<std::string> names;
  for (const std::string text : texts) {
    size_t at = 0;
    while ((at = text.find("inline ", at)) != std::string::npos) {
      const size_t line = text.find('\n', at), start = text.find("FN(", at);
      at = line == std::string::npos ? text.size() : line;
      if (start < at) names.insert(text.substr(start + 3, text.find(')', start) - start - 3));
    }
  }
  return names;
}

std::string define(const char* name, const std::string& value) {
  return std::string("#define ") + name + " " + value + "\n";
}

}  // namespace

std::string Dialect::call(const char* function, treadle_dtype compute,
                          const std::vector<std::string>& arguments) const {
  if (!can_fail(function, compute)) return ExpressionDialect::call(function, compute, arguments);
  std::vector<std::string> with_fault = arguments;
  with_fault.push_back("fault");
  return ExpressionDialect::call(function, compute, with_fault);
}

bool has_function(const std::string& name, treadle_dtype compute) {
  static const std::set<std::string> everywhere = {"cast_bool",  "where",       "logical_and",
                                                   "logical_or", "logical_xor", "logical_not"};
  static const auto floats = defined_in({kFloats});
  static const auto integers = defined_in({kIntegers, kWhole});
  static const auto bools = defined_in({kBools, kWhole});
  static const auto complex = defined_in({kComplex});
  const auto& names = plugin::is_complex_dtype(compute)    ? complex
                      : plugin::is_floating_dtype(compute) ? floats
                      : compute == TREADLE_BOOL            ? bools
                                                           : integers;
  return names.count(name) != 0 || everywhere.count(name) != 0;
}
bool can_fail(const std::string& name, treadle_dtype compute) {
  return plugin::is_integer_dtype(compute) && (name == "trunc_divide" || name == "floor_divide" ||
                                               name == "fmod" || name == "remainder");
}

std::string value_type(treadle_dtype compute) { return Dialect().type(compute); }
std::string storage_type(treadle_dtype dtype) {
  if (dtype == TREADLE_FLOAT16 || dtype == TREADLE_BFLOAT16) return "ushort";
  return value_type(dtype);
}

std::string converted(const std::string& text, treadle_dtype from, treadle_dtype to) {
  if (from == to) return text;
  if (from == TREADLE_FLOAT16) return converted("tr_from_f16(" + text + ")", TREADLE_FLOAT32, to);
  if (from == TREADLE_BFLOAT16) return converted("tr_from_bf16(" + text + ")", TREADLE_FLOAT32, to);
  if (plugin::is_complex_dtype(from)) {
    if (plugin::is_complex_dtype(to))
      return (to == TREADLE_COMPLEX64 ? "convert_float2(" : "convert_double2(") + text + ")";
    if (to == TREADLE_BOOL) return "((uchar)((" + text + ").x != 0 || (" + text + ").y != 0))";
    return converted("(" + text + ").x",
                     from == TREADLE_COMPLEX64 ? TREADLE_FLOAT32 : TREADLE_FLOAT64, to);
  }
  if (to == TREADLE_COMPLEX64) return "((float2)((float)" + text + ", 0.0f))";
  if (to == TREADLE_COMPLEX128) return "((double2)((double)" + text + ", 0.0))";
  if (to == TREADLE_BOOL) return "((uchar)((" + text + ") != 0))";
  if (to == TREADLE_FLOAT16) return "tr_to_f16((float)" + text + ")";
  if (to == TREADLE_BFLOAT16) return "tr_to_bf16((float)" + text + ")";
  if (plugin::is_floating_dtype(from) && plugin::is_integer_dtype(to)) {
    if (to == TREADLE_UINT64) return "tr_ulong((double)" + text + ")";
    return "((" + value_type(to) + ")tr_long((double)" + text + "))";
  }
  return "((" + value_type(to) + ")" + text + ")";
}
std::string converted_truth(const std::string& text, treadle_dtype to) {
  return converted("((uchar)" + text + ")", TREADLE_BOOL, to);
}

std::string prelude(treadle_dtype compute) {
  std::string text = kCommon;
  text += define("T", value_type(compute));
  text += "#define FN(name) TR_JOIN(tr_##name##_, " + std::string(plugin::dtype_suffix(compute)) +
          ")\n";
  if (plugin::is_floating_dtype(compute)) {
    text +=
        "#define ADD(a, b) ((a) + (b))\n#define SUB(a, b) ((a) - (b))\n"
        "#define MUL(a, b) ((a) * (b))\n";
    return text + kFloats;
  }
  text +=
      "#define ADD(a, b) FN(add)(a, b)\n#define SUB(a, b) FN(sub)(a, b)\n"
      "#define MUL(a, b) FN(mul)(a, b)\n";
  if (plugin::is_complex_dtype(compute)) {
    text += define("R", compute == TREADLE_COMPLEX64 ? "float" : "double");
    return text + kComplex;
  }
  if (compute == TREADLE_BOOL) return text + kBools + kWhole;
  const std::string type = value_type(compute);
  const bool is_signed = plugin::is_signed_dtype(compute);
  text += define("U", is_signed ? "u" + type : type);
  text += define("W", type.find("long") != std::string::npos ? "ulong" : "uint");
  text += define("IS_SIGNED", is_signed ? "1" : "0");
  return text + kIntegers + kWhole;
}

std::string element_prelude(treadle_dtype dtype) {
  const treadle_dtype compute = compute_of(dtype);
  std::string text = prelude(compute);
  text += define("S", storage_type(dtype));
  text += "#define LOAD(p, i) " + converted("(p)[i]", dtype, compute) + "\n";
  text += "#define STORE(p, i, v) ((p)[i] = " + converted("(v)", compute, dtype) + ")\n";
  return text;
}

}  // namespace treadle_opencl
