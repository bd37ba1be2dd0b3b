// The types that stand for others, as in C++: what is accepted here must compile there.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/expressions/expr_type.h"

#include <algorithm>
#include <utility>

namespace treadle::schemac {
namespace {

using schema::BaseType;
using schema::Type;

// The types of integers that may be symbolic elsewhere are plain here.
BaseType plain(BaseType base) {
  if (base == BaseType::SymInt) return BaseType::Int;
  if (base == BaseType::SymFloat) return BaseType::Float;
  if (base == BaseType::SymBool) return BaseType::Bool;
  return base;
}

// Bool, Int, Float, Scalar: each holds those before it.
int rank(BaseType base) {
  switch (plain(base)) {
    case BaseType::Bool:
      return 0;
    case BaseType::Int:
      return 1;
    case BaseType::Float:
      return 2;
    default:
      return 3;
  }
}

Fit worse(Fit a, Fit b) { return std::min(a, b); }

Fit fits_base(BaseType value, BaseType parameter) {
  value = plain(value);
  parameter = plain(parameter);
  if (value == parameter) return Fit::Exactly;
  if (!is_number(value) || !is_number(parameter)) return Fit::Never;
  // C++ would convert a number to bool, too, and mean something else.
  return rank(value) < rank(parameter) ? Fit::Converted : Fit::Never;
}

}  // namespace

bool is_number(BaseType base) {
  switch (base) {
    case BaseType::Scalar:
    case BaseType::Int:
    case BaseType::SymInt:
    case BaseType::Float:
    case BaseType::SymFloat:
    case BaseType::Bool:
    case BaseType::SymBool:
      return true;
    default:
      return false;
  }
}

ExprType ExprType::value(Type type) {
  type.alias.reset();  // whose memory it is does not matter here
  return {Kind::Value, {std::move(type)}};
}

ExprType ExprType::of(std::string_view text) { return value(schema::parse_type(text)); }

ExprType ExprType::results(const std::vector<Type>& types) {
  if (types.size() == 1) return value(types[0]);
  ExprType several{Kind::Several, types};
  for (Type& type : several.parts) type.alias.reset();
  return several;
}

bool ExprType::is(BaseType base) const {
  return kind == Kind::Value && parts[0].base == base && !parts[0].list;
}

bool ExprType::is_tensors() const {
  return kind == Kind::Value && parts[0].is_tensor() && parts[0].list;
}

bool ExprType::is_list() const {
  return kind == Kind::EmptyList || (kind == Kind::Value && parts[0].list);
}

bool ExprType::is_number() const {
  return kind == Kind::Value && !parts[0].list && schemac::is_number(parts[0].base);
}

bool ExprType::is_optional() const { return kind == Kind::Value && parts[0].optional; }

std::string ExprType::text() const {
  switch (kind) {
    case Kind::Unknown:
      return "unknown";
    case Kind::Value:
      return print(parts[0]);
    case Kind::Several: {
      std::string all;
      for (const Type& part : parts) all += (all.empty() ? "" : ", ") + print(part);
      return "(" + all + ")";
    }
    case Kind::None:
      return "None";
    case Kind::EmptyList:
      return "[]";
    case Kind::Element:
      return "element";
    case Kind::Truth:
      return "truth";
    case Kind::Shape:
      return "shape";
    case Kind::Never:
      return "never";
  }
  return "";
}

std::string words_for(const Type& type) {
  std::string one;
  if (type.is_tensor()) {
    one = "tensor";
  } else if (is_number(type.base)) {
    one = "number";
  } else if (type.base == BaseType::Str) {
    one = "text";
  } else if (type.base == BaseType::ScalarType) {
    one = "dtype";
  } else if (type.base == BaseType::Device) {
    one = "device";
  } else {
    one = std::string(name_of(type.base));
  }
  return type.list ? "a list of " + one + "s" : "a " + one;
}

std::string ExprType::words() const {
  switch (kind) {
    case Kind::Value:
      return words_for(parts[0]);
    case Kind::Several:
      return parts.empty() ? "nothing" : "several results";
    case Kind::None:
      return "None";
    case Kind::EmptyList:
      return "an empty list";
    default:
      return "something else";
  }
}

ExprType common(const ExprType& a, const ExprType& b) {
  using Kind = ExprType::Kind;
  if (a.kind == Kind::EmptyList && b.is_list()) return b;
  if (b.kind == Kind::EmptyList && a.is_list()) return a;
  if (a.kind == Kind::None && b.kind == Kind::None) return a;
  if (a.kind == Kind::None || b.kind == Kind::None) {
    ExprType some = a.kind == Kind::None ? b : a;
    if (some.kind != Kind::Value) return {};
    some.parts[0].optional = true;
    return some;
  }
  if (a.kind != Kind::Value || b.kind != Kind::Value) return {};
  Type type = a.parts[0];
  const Type& other = b.parts[0];
  if (type.list != other.list) return {};
  if (plain(type.base) != plain(other.base)) {
    if (!is_number(type.base) || !is_number(other.base) || type.list) return {};
    if (rank(other.base) > rank(type.base)) type.base = other.base;
  }
  if (type.list_size != other.list_size) type.list_size.reset();
  type.optional = type.optional || other.optional;
  type.element_optional = type.element_optional || other.element_optional;
  return ExprType::value(type);
}

Fit fits(const ExprType& value, const Type& parameter) {
  using Kind = ExprType::Kind;
  switch (value.kind) {
    case Kind::Unknown:
      return Fit::Converted;
    case Kind::None:
      return parameter.optional ? Fit::Converted : Fit::Never;
    case Kind::EmptyList:
      return parameter.list ? Fit::Converted : Fit::Never;
    case Kind::Value:
      break;
    default:
      return Fit::Never;
  }
  const Type& got = value.parts[0];
  if (got.list != parameter.list) return Fit::Never;
  if (got.list) {
    const Fit elements = plain(got.base) == plain(parameter.base) ? Fit::Exactly : Fit::Never;
    // Flags for results or dimensions are an array of a fixed length in C++, other lists are not.
    const bool array = parameter.base == BaseType::Bool && parameter.list_size;
    if (array && got.list_size != parameter.list_size) return Fit::Never;
    if (got.optional && !parameter.optional) return Fit::Never;
    return got.optional == parameter.optional ? elements : worse(elements, Fit::Converted);
  }
  const Fit fit = fits_base(got.base, parameter.base);
  // A tensor that is None is one without elements; of other types the two differ.
  if (got.optional && !parameter.optional && !got.is_tensor()) return Fit::Never;
  return got.optional == parameter.optional ? fit : worse(fit, Fit::Converted);
}

Told tell_apart(const Type& wanted, const ExprType& got) {
  Told words{words_for(wanted), got.words()};
  if (words.wanted != words.got) return words;
  Type plain_type = wanted;
  plain_type.alias.reset();
  return {"of type " + print(plain_type), got.text()};
}

}  // namespace treadle::schemac
