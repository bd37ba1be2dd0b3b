// Reads and prints types.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/schema/type.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace treadle::schema {
namespace {

// In the order of BaseType.
const std::vector<std::string>& names() {
  static const std::vector<std::string> table = {
      "Tensor",           "Scalar", "int",         "SymInt",       "float",
      "SymFloat",         "bool",   "SymBool",     "str",          "ScalarType",
      "Layout",           "Device", "DeviceIndex", "MemoryFormat", "Generator",
      "Storage",          "Stream", "Dimname",     "DimVector",    "QScheme",
      "ConstQuantizerPtr"};
  return table;
}

// The names of the types in other languages, which give a better remedy than the nearest spelling.
std::string type_hint(std::string_view word) {
  constexpr std::pair<std::string_view, std::string_view> kForeign[] = {
      {"int64_t", "int"}, {"long", "int"},   {"integer", "int"},  {"double", "float"},
      {"string", "str"},  {"String", "str"}, {"boolean", "bool"}, {"dtype", "ScalarType"},
      {"size", "int[]"},  {"Int", "int"},    {"Float", "float"},  {"Bool", "bool"}};
  for (const auto& [foreign, ours] : kForeign) {
    if (word == foreign) return "write '" + std::string(ours) + "'";
  }
  return did_you_mean(word, names());
}

std::vector<std::string> parse_alias_sets(TokenCursor& cursor) {
  std::vector<std::string> sets;
  do {
    if (cursor.accept("*")) {
      sets.push_back("*");
      continue;
    }
    const Token name = cursor.expect_name("the name of an alias set");
    if (std::find(sets.begin(), sets.end(), name.text) != sets.end()) {
      cursor.fail(name.offset, "alias set '" + std::string(name.text) + "' is named twice",
                  "name it once");
    }
    sets.emplace_back(name.text);
  } while (cursor.accept("|"));
  return sets;
}

Alias parse_alias(TokenCursor& cursor) {
  cursor.expect("(", "of an alias annotation");
  Alias alias;
  alias.before = parse_alias_sets(cursor);
  alias.write = cursor.accept("!");
  alias.after = cursor.accept("->") ? parse_alias_sets(cursor) : alias.before;
  cursor.expect(")", "after the alias annotation");
  return alias;
}

std::string join_sets(const std::vector<std::string>& sets) {
  std::string text;
  for (const std::string& set : sets) {
    if (!text.empty()) text += '|';
    text += set;
  }
  return text;
}

}  // namespace

std::string_view name_of(BaseType type) { return names()[static_cast<std::size_t>(type)]; }

std::span<const std::string> base_type_names() { return names(); }

std::string print(const Alias& alias) {
  std::string text = "(" + join_sets(alias.before);
  if (alias.write) text += '!';
  if (alias.after != alias.before) text += " -> " + join_sets(alias.after);
  return text + ")";
}

std::string print(const Type& type) {
  std::string text(name_of(type.base));
  if (type.alias) text += print(*type.alias);
  if (type.element_optional) text += '?';
  if (type.list) text += type.list_size ? "[" + std::to_string(*type.list_size) + "]" : "[]";
  if (type.optional) text += '?';
  return text;
}

Type parse_type(TokenCursor& cursor) {
  const Token word = cursor.expect_name("a type");
  const auto found = std::find(names().begin(), names().end(), word.text);
  if (found == names().end()) {
    cursor.fail(word.offset, "unknown type '" + std::string(word.text) + "'", type_hint(word.text));
  }
  Type type;
  type.base = static_cast<BaseType>(found - names().begin());
  if (cursor.at("(")) {
    if (!type.is_tensor()) {
      cursor.fail(cursor.peek().offset, "alias annotation on type '" + std::string(word.text) + "'",
                  "only tensors share memory; remove it");
    }
    type.alias = parse_alias(cursor);
  }
  const bool question = cursor.accept("?");
  if (!cursor.accept("[")) {
    type.optional = question;
    return type;
  }
  type.list = true;
  type.element_optional = question;
  if (!cursor.at("]")) {
    const Token size = cursor.next();
    std::int64_t value = 0;
    const auto parsed =
        std::from_chars(size.text.data(), size.text.data() + size.text.size(), value);
    if (size.kind != TokenKind::integer || parsed.ec != std::errc() || value < 1 || value > 1024) {
      cursor.fail(size.offset, "expected a list size from 1 to 1024, got " + describe(size),
                  "write '[]' for a list of any length");
    }
    type.list_size = value;
  }
  cursor.expect("]", "after the list size");
  if (cursor.at("[")) {
    cursor.fail(cursor.peek().offset, "list of lists", "a list's elements are single values");
  }
  type.optional = cursor.accept("?");
  return type;
}

Type parse_type(const SourceText& source) {
  TokenCursor cursor(source);
  Type type = parse_type(cursor);
  if (!cursor.at_end()) cursor.fail_expected("the end of the type");
  return type;
}

Type parse_type(std::string_view text, SourcePos start) {
  return parse_type(SourceText(text, std::move(start)));
}

}  // namespace treadle::schema
