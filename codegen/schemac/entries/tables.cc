// The tables behind tables.h. A new tag or key is one word here.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/entries/tables.h"

#include <algorithm>
#include <utility>

#include "core/schema/dtypes.h"

namespace treadle::schemac {
namespace {

using Words = std::vector<std::string>;

using schema::DtypeKind;

template <class Chosen>
Words dtypes_where(Chosen chosen) {
  Words names;
  for (const schema::Dtype& dtype : schema::kDtypes) {
    if (chosen(dtype.kind)) names.emplace_back(dtype.name);
  }
  return names;
}

const std::vector<std::pair<std::string, Words>>& dtype_classes() {
  const auto is = [](DtypeKind wanted) { return [=](DtypeKind kind) { return kind == wanted; }; };
  static const std::vector<std::pair<std::string, Words>> table = {
      {"integral", dtypes_where([](DtypeKind kind) { return is_integral(kind); })},
      {"floating", dtypes_where(is(DtypeKind::Floating))},
      {"complex", dtypes_where(is(DtypeKind::Complex))},
      {"real", dtypes_where([](DtypeKind kind) {
         return is_integral(kind) || kind == DtypeKind::Floating;
       })},
      {"number", dtypes_where([](DtypeKind kind) { return kind != DtypeKind::Bool; })},
      {"any", dtypes_where([](DtypeKind) { return true; })}};
  return table;
}

}  // namespace

std::span<const std::string> known_keys() {
  static const Words words = {"func",     "python_module", "variants",        "forms",
                              "alias_of", "pointwise",     "reduce",          "promote",
                              "shape",    "check",         "dispatch",        "tags",
                              "dtypes",   "dtype_of",      "argument_dtypes", "out_from",
                              "moves",    "autocast",      "foreach",         "doc"};
  return words;
}

std::span<const std::string> known_tags() {
  static const Words words = {"nondeterministic_seeded",
                              "data_dependent_output",
                              "view_copy",
                              "inplace_view",
                              "pointwise",
                              "core",
                              "reduction",
                              "random",
                              "no_python",
                              "internal",
                              "differentiable_none",
                              "whole",
                              "as_tensor",
                              "may_wait",
                              "layouts"};
  return words;
}

std::span<const std::string> known_variants() {
  static const Words words = {"function", "method"};
  return words;
}

std::span<const std::string> known_forms() {
  static const Words words = {"functional", "inplace", "out"};
  return words;
}

std::span<const std::string> known_promotions() {
  static const Words words = {"common", "float", "compare", "bool", "sum", "real", "none"};
  return words;
}

std::span<const std::string> known_autocast_policies() {
  static const Words words = {"lower", "float32", "widest", "as_called", "refused"};
  return words;
}

std::span<const std::string> known_autocast_devices() {
  static const Words words = {"all", "CPU", "CUDA"};
  return words;
}

std::span<const std::string> known_dtypes() { return dtype_classes().back().second; }

std::span<const std::string> known_dtype_words() {
  static const Words words = [] {
    Words all(known_dtypes().begin(), known_dtypes().end());
    for (const auto& [name, members] : dtype_classes()) all.push_back(name);
    return all;
  }();
  return words;
}

std::span<const std::string> known_argument_dtype_words() {
  static const Words words = [] {
    Words all = {"same", "index", "sums"};
    all.insert(all.end(), known_dtype_words().begin(), known_dtype_words().end());
    return all;
  }();
  return words;
}

std::vector<std::string> expand_dtype(std::string_view word) {
  for (const auto& [name, members] : dtype_classes()) {
    if (name == word) return members;
  }
  if (contains(known_dtypes(), word)) return {std::string(word)};
  return {};
}

std::string aten_key_remedy(std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kRemedies[] = {
      {"structured", "remove it: an operator with 'shape' and 'dispatch' is structured"},
      {"structured_delegate", "remove it and list the form under 'forms' of the functional entry"},
      {"structured_inherits", "remove it: kernels are plain functions"},
      {"autogen", "remove it and list the forms under 'forms'"},
      {"device_check", "remove it: devices are always checked"},
      {"device_guard", "remove it: the device is always set"},
      {"cpp_no_default_args", "remove it: C++ has the schema's defaults"},
      {"manual_cpp_binding", "remove it: every operator is bound by the generator"},
      {"manual_kernel_registration", "remove it: every operator is registered by the generator"},
      {"category_override", "remove it: the folder of the kernel is its category"},
      {"precomputed", "remove it: a kernel computes what it needs"},
      {"ufunc_inner_loop", "write the element's value as 'pointwise'"},
      {"use_const_ref_for_mutable_tensors", "remove it: tensors are always passed that way"},
      {"namespace", "write it in 'func', as in 'func: mine::name(...)'"}};
  for (const auto& [known, remedy] : kRemedies) {
    if (known == key) return std::string(remedy);
  }
  return "";
}

std::span<const std::string> aten_keys() {
  static const Words words = {"func",
                              "variants",
                              "dispatch",
                              "tags",
                              "python_module",
                              "structured",
                              "structured_delegate",
                              "structured_inherits",
                              "autogen",
                              "device_check",
                              "device_guard",
                              "cpp_no_default_args",
                              "manual_cpp_binding",
                              "manual_kernel_registration",
                              "category_override",
                              "precomputed",
                              "ufunc_inner_loop",
                              "use_const_ref_for_mutable_tensors",
                              "namespace"};
  return words;
}

std::span<const std::string> cpp_keywords() {
  static const Words words = {"alignas",
                              "alignof",
                              "and",
                              "and_eq",
                              "asm",
                              "auto",
                              "bitand",
                              "bitor",
                              "bool",
                              "break",
                              "case",
                              "catch",
                              "char",
                              "char16_t",
                              "char32_t",
                              "char8_t",
                              "class",
                              "co_await",
                              "co_return",
                              "co_yield",
                              "compl",
                              "concept",
                              "const",
                              "const_cast",
                              "consteval",
                              "constexpr",
                              "constinit",
                              "continue",
                              "decltype",
                              "default",
                              "delete",
                              "do",
                              "double",
                              "dynamic_cast",
                              "else",
                              "enum",
                              "explicit",
                              "export",
                              "extern",
                              "false",
                              "float",
                              "for",
                              "friend",
                              "goto",
                              "if",
                              "inline",
                              "int",
                              "long",
                              "mutable",
                              "namespace",
                              "new",
                              "noexcept",
                              "not",
                              "not_eq",
                              "nullptr",
                              "operator",
                              "or",
                              "or_eq",
                              "private",
                              "protected",
                              "public",
                              "register",
                              "requires",
                              "return",
                              "short",
                              "signed",
                              "sizeof",
                              "static",
                              "static_assert",
                              "static_cast",
                              "struct",
                              "switch",
                              "template",
                              "this",
                              "thread_local",
                              "throw",
                              "true",
                              "try",
                              "typedef",
                              "typeid",
                              "typename",
                              "union",
                              "unsigned",
                              "using",
                              "virtual",
                              "void",
                              "volatile",
                              "wchar_t",
                              "while",
                              "xor",
                              "xor_eq",
                              "reinterpret_cast"};
  return words;
}

std::string cpp_name(std::string_view name) {
  return std::string(name) + (contains(cpp_keywords(), name) ? "_" : "");
}

std::span<const std::string> taken_cpp_names() {
  static const Words words = {"dispatch", "ops", "shape", "composite", "views", "generated"};
  return words;
}

bool contains(std::span<const std::string> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace treadle::schemac
