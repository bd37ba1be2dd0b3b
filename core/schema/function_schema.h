// The schema of an operator: its name, its arguments and its results.
//
//   aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
//
// The grammar contains PyTorch's as a subset. Printing a parsed schema gives its text back.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/schema/diagnostic.h"
#include "core/schema/type.h"

namespace treadle::schema {

// "aten::add_.Tensor": ns "aten", base "add_", overload "Tensor".
struct OperatorName {
  std::string ns;  // empty if the text names none
  std::string base;
  std::string overload;  // empty if there is none

  bool operator==(const OperatorName&) const = default;
};

enum class DefaultKind { Int, Float, Bool, String, None, List, Name };

// A default value. A Name is a constant such as contiguous_format, Mean or long.
struct Default {
  DefaultKind kind = DefaultKind::None;
  std::string text;  // as written: 1e-05 stays 1e-05
  // Int, Float, Bool, and the characters of a String or Name. None and List have no value here.
  std::variant<std::monostate, std::int64_t, double, bool, std::string> value;
  std::vector<Default> items;  // of a List
};

struct Argument {
  std::string name;
  Type type;
  std::optional<Default> default_value;
  bool kwarg_only = false;
  std::size_t offset = 0;  // of the name in the schema's text
};

struct Return {
  std::string name;  // empty if it has none
  Type type;
};

struct FunctionSchema {
  OperatorName name;
  std::vector<Argument> arguments;
  std::vector<Return> returns;

  const Argument* find_argument(std::string_view argument) const;
};

std::string print(const OperatorName& name);
std::string print(const Argument& argument);
std::string print(const FunctionSchema& schema);

// These throw SchemaError.
FunctionSchema parse_schema(const SourceText& source);
FunctionSchema parse_schema(std::string_view text, SourcePos start = {});
OperatorName parse_operator_name(const SourceText& source);

}  // namespace treadle::schema
