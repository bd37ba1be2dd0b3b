// Reads defaults without regard to the type first, so that the message can name a default that does
// not fit.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/schema/default_value.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <span>
#include <utility>

#include "core/schema/dtypes.h"

namespace treadle::schema {
namespace {

Default number(TokenCursor& cursor) {
  const std::size_t offset = cursor.peek().offset;
  const bool negative = cursor.accept("-");
  const Token token = cursor.next();
  Default result;
  result.text = (negative ? "-" : "") + std::string(token.text);
  if (token.kind == TokenKind::integer) {
    std::int64_t value = 0;
    const auto parsed =
        std::from_chars(result.text.data(), result.text.data() + result.text.size(), value);
    if (parsed.ec != std::errc())
      cursor.fail(offset, "integer " + result.text + " does not fit into 64 bits");
    result.kind = DefaultKind::Int;
    result.value = value;
    return result;
  }
  if (token.kind == TokenKind::name && (token.text == "inf" || token.text == "nan")) {
    result.kind = DefaultKind::Name;
    result.value = result.text;
    return result;
  }
  if (token.kind != TokenKind::floating) {
    cursor.fail(token.offset, "expected a number after '-', got " + describe(token));
  }
  double value = 0;
  const auto parsed =
      std::from_chars(result.text.data(), result.text.data() + result.text.size(), value);
  if (parsed.ec != std::errc() || !std::isfinite(value)) {
    cursor.fail(offset, "number " + result.text + " does not fit into 64 bits");
  }
  result.kind = DefaultKind::Float;
  result.value = value;
  return result;
}

Default value(TokenCursor& cursor, bool inside_list);

Default list(TokenCursor& cursor) {
  cursor.expect("[", "of a list");
  Default result;
  result.kind = DefaultKind::List;
  result.text = "[";
  if (!cursor.at("]")) {
    do {
      result.items.push_back(value(cursor, true));
      if (result.items.size() > 1) result.text += ',';
      result.text += result.items.back().text;
    } while (cursor.accept(","));
  }
  cursor.expect("]", "after the list");
  result.text += ']';
  return result;
}

Default value(TokenCursor& cursor, bool inside_list) {
  const Token& token = cursor.peek();
  if (cursor.at("[")) {
    if (inside_list)
      cursor.fail(token.offset, "list of lists", "a list's elements are single values");
    return list(cursor);
  }
  if (cursor.at("-") || token.kind == TokenKind::integer || token.kind == TokenKind::floating)
    return number(cursor);
  Default result;
  result.text = std::string(token.text);
  if (token.kind == TokenKind::string) {
    result.kind = DefaultKind::String;
    result.value = unquote(token.text);
  } else if (token.kind == TokenKind::name) {
    if (token.text == "True" || token.text == "False") {
      result.kind = DefaultKind::Bool;
      result.value = token.text == "True";
    } else if (token.text == "None") {
      result.kind = DefaultKind::None;
    } else {
      result.kind = DefaultKind::Name;
      result.value = result.text;
    }
  } else {
    cursor.fail_expected("a default value after '='");
  }
  cursor.next();
  return result;
}

std::string_view kind_name(DefaultKind kind) {
  constexpr std::string_view kNames[] = {"an integer", "a float", "a bool", "a string",
                                         "None",       "a list",  "a name"};
  return kNames[static_cast<std::size_t>(kind)];
}

// The constants that a default of this type may name.
std::span<const std::string> constants(BaseType base) {
  static const std::array<std::string, 2> reductions = {"Mean", "Sum"};
  static const std::array<std::string, 2> floats = {"inf", "nan"};
  static const std::vector<std::string> dtypes = [] {
    std::vector<std::string> names;
    for (const Dtype& dtype : kDtypes) names.emplace_back(dtype.name);
    for (const Dtype& dtype : kDtypes) {
      if (!dtype.alias.empty()) names.emplace_back(dtype.alias);
    }
    return names;
  }();
  static const std::array<std::string, 4> formats = {"contiguous_format", "preserve_format",
                                                     "channels_last", "channels_last_3d"};
  static const std::array<std::string, 1> layouts = {"strided"};
  switch (base) {
    case BaseType::Int:
    case BaseType::SymInt:
      return reductions;
    case BaseType::Float:
    case BaseType::SymFloat:
    case BaseType::Scalar:
      return floats;
    case BaseType::ScalarType:
      return dtypes;
    case BaseType::MemoryFormat:
      return formats;
    case BaseType::Layout:
      return layouts;
    default:
      return {};
  }
}

bool fits(DefaultKind kind, BaseType base) {
  switch (base) {
    case BaseType::Int:
    case BaseType::SymInt:
    case BaseType::DeviceIndex:
      return kind == DefaultKind::Int;
    case BaseType::Float:
    case BaseType::SymFloat:
      return kind == DefaultKind::Int || kind == DefaultKind::Float;
    case BaseType::Scalar:
      return kind == DefaultKind::Int || kind == DefaultKind::Float || kind == DefaultKind::Bool;
    case BaseType::Bool:
    case BaseType::SymBool:
      return kind == DefaultKind::Bool;
    case BaseType::Str:
    case BaseType::Device:
    case BaseType::Dimname:
      return kind == DefaultKind::String;
    default:
      return false;
  }
}

}  // namespace

Default parse_default(TokenCursor& cursor, const Type& type, std::string_view argument) {
  const std::size_t offset = cursor.peek().offset;
  Default result = value(cursor, false);
  const std::string what = "default of argument '" + std::string(argument) + "'";

  const auto require = [&](const Default& item, std::string_view subject) {
    if (item.kind == DefaultKind::Name) {
      const auto known = constants(type.base);
      const std::string bare =
          item.text[0] == '-' && item.text != "-nan" ? item.text.substr(1) : item.text;
      if (std::find(known.begin(), known.end(), bare) != known.end()) return;
      std::string hint = did_you_mean(item.text, known);
      if (item.text == "true") hint = "write 'True'";
      if (item.text == "false") hint = "write 'False'";
      cursor.fail(offset,
                  what + " is '" + item.text + "', which is no value of type '" + print(type) + "'",
                  hint);
    }
    if (fits(item.kind, type.base)) return;
    cursor.fail(offset, what + std::string(subject) + std::string(kind_name(item.kind)) +
                            ", but its type is '" + print(type) + "'");
  };

  if (result.kind == DefaultKind::None) {
    if (!type.optional) {
      cursor.fail(offset, what + " is None, but its type is '" + print(type) + "'",
                  "write '" + print(type) + "?' if it may be missing");
    }
    return result;
  }
  if (result.kind == DefaultKind::List) {
    if (!type.list) require(result, " is ");
    // A size of 1 only says that a single value may stand for the list. An empty list stands for
    // "not given".
    const auto count = static_cast<std::int64_t>(result.items.size());
    if (type.list_size && *type.list_size > 1 && count != 0 && count != *type.list_size) {
      cursor.fail(offset, what + " has " + std::to_string(result.items.size()) +
                              " elements, but its type is '" + print(type) + "'");
    }
    for (const Default& item : result.items) {
      if (item.kind == DefaultKind::None && type.element_optional) continue;
      require(item, " contains ");
    }
    return result;
  }
  require(result, " is ");
  if (type.list && !type.list_size) {
    cursor.fail(offset,
                what + " is " + std::string(kind_name(result.kind)) + ", but its type is '" +
                    print(type) + "'",
                "write '[" + result.text + "]'");
  }
  return result;
}

}  // namespace treadle::schema
