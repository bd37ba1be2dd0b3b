// The dtypes that kernels know, under the same names in every expression.
//
//   static_assert(kDtypes[11].name == "float32" && kDtypes[11].cpp == "float");
//
// No other table lists them. Their order is that of the enum ScalarType, which core asserts.
// schemac writes the table into the model, where the generator reads it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace treadle::schema {

enum class DtypeKind { Bool, Unsigned, Signed, Floating, Complex };

struct Dtype {
  std::string_view name;        // in entries and in Python
  std::string_view enumerator;  // of ScalarType
  std::string_view cpp;         // the type of an element in C++
  DtypeKind kind;
  std::string_view alias = "";  // by which defaults of schemas name it as well
};

inline constexpr std::array kDtypes = {
    Dtype{"bool", "Bool", "bool", DtypeKind::Bool},
    Dtype{"uint8", "UInt8", "uint8_t", DtypeKind::Unsigned, "byte"},
    Dtype{"uint16", "UInt16", "uint16_t", DtypeKind::Unsigned},
    Dtype{"uint32", "UInt32", "uint32_t", DtypeKind::Unsigned},
    Dtype{"uint64", "UInt64", "uint64_t", DtypeKind::Unsigned},
    Dtype{"int8", "Int8", "int8_t", DtypeKind::Signed, "char"},
    Dtype{"int16", "Int16", "int16_t", DtypeKind::Signed, "short"},
    Dtype{"int32", "Int32", "int32_t", DtypeKind::Signed, "int"},
    Dtype{"int64", "Int64", "int64_t", DtypeKind::Signed, "long"},
    Dtype{"float16", "Float16", "Half", DtypeKind::Floating, "half"},
    Dtype{"bfloat16", "BFloat16", "BFloat16", DtypeKind::Floating},
    Dtype{"float32", "Float32", "float", DtypeKind::Floating, "float"},
    Dtype{"float64", "Float64", "double", DtypeKind::Floating, "double"},
    Dtype{"complex64", "Complex64", "std::complex<float>", DtypeKind::Complex},
    Dtype{"complex128", "Complex128", "std::complex<double>", DtypeKind::Complex},
};

constexpr bool is_integral(DtypeKind kind) {
  return kind == DtypeKind::Unsigned || kind == DtypeKind::Signed;
}

constexpr const Dtype* find_dtype(std::string_view name) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.name == name) return &dtype;
  }
  return nullptr;
}

// Numbers with a name in every expression.
inline constexpr std::array<std::string_view, 3> kNumberConstants = {"inf", "nan", "pi"};

constexpr bool is_number_constant(std::string_view name) {
  for (const std::string_view known : kNumberConstants) {
    if (known == name) return true;
  }
  return false;
}

// Whether a name can be no argument in any expression: it is a number or a dtype.
constexpr bool is_constant(std::string_view name) {
  return is_number_constant(name) || find_dtype(name) != nullptr;
}

}  // namespace treadle::schema
