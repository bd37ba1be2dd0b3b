// Types of arguments and results, in the notation of schemas.
//
//   Tensor     Tensor?     Tensor?[]     int[2]     SymInt[1]?     Tensor(a!)     Tensor(a -> *)[]
//
// The parts, from left to right: a base type; for tensors, which memory they share with others (the
// alias annotation); '?' if an element may be missing; '[]' or '[N]' for a list; '?' if the list
// may be missing.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/schema/diagnostic.h"
#include "core/schema/lexer.h"

namespace treadle::schema {

enum class BaseType {
  Tensor,
  Scalar,
  Int,
  SymInt,
  Float,
  SymFloat,
  Bool,
  SymBool,
  Str,
  ScalarType,
  Layout,
  Device,
  DeviceIndex,
  MemoryFormat,
  Generator,
  Storage,
  Stream,
  Dimname,
  DimVector,
  QScheme,
  ConstQuantizerPtr,
};

// The spelling in schemas: "Tensor", "int", "str", ...
std::string_view name_of(BaseType type);
// All names, for messages and tables.
std::span<const std::string> base_type_names();

// "(a!)": memory in set a, written to. "(a -> *)": in set a before the call, anywhere after it.
struct Alias {
  std::vector<std::string> before;  // names of sets; "*" is any memory
  bool write = false;
  std::vector<std::string> after;  // equals `before` if the schema has no '->'

  bool operator==(const Alias&) const = default;
};

struct Type {
  BaseType base = BaseType::Tensor;
  std::optional<Alias> alias;
  bool element_optional = false;  // Tensor?[]; false for types that are not lists
  bool list = false;
  std::optional<std::int64_t> list_size;  // int[2]
  bool optional = false;

  bool operator==(const Type&) const = default;
  // The type of the list's elements, or the type itself if it is no list.
  bool is_tensor() const { return base == BaseType::Tensor; }
  bool writes() const { return alias && alias->write; }
};

std::string print(const Alias& alias);
std::string print(const Type& type);

Type parse_type(const SourceText& source);
Type parse_type(std::string_view text, SourcePos start = {});
// Reads one type and leaves the cursor behind it.
Type parse_type(TokenCursor& cursor);

}  // namespace treadle::schema
