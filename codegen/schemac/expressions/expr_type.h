// The type of an expression: one of the schema grammar's, or one that only expressions have.
//
//   ExprType::of("int[]").text()            // "int[]"
//   fits(ExprType::of("int"), parse_type("Scalar"))   // Fit::Converted
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/schema/type.h"

namespace treadle::schemac {

bool is_number(schema::BaseType base);  // int, float, bool or Scalar

struct ExprType {
  enum class Kind {
    Unknown,    // nothing is known of it, or an error was reported
    Value,      // `parts[0]`
    Several,    // several results, `parts`
    None,       //
    EmptyList,  // {}, which may be of anything
    Element,    // of a pointwise or reduce expression: one element, or a number beside it
    Truth,      // and one that is true or false
    Shape,      // the result of a shape rule
    Never,      // of not_implemented: there is no value
  };
  Kind kind = Kind::Unknown;
  std::vector<schema::Type> parts;

  static ExprType value(schema::Type type);
  static ExprType of(std::string_view text);  // "Tensor[]"
  // The results of a call: none, one or several.
  static ExprType results(const std::vector<schema::Type>& types);

  bool is_unknown() const { return kind == Kind::Unknown; }
  bool is(schema::BaseType base) const;  // a value of it that is no list
  bool is_tensor() const { return is(schema::BaseType::Tensor); }
  bool is_tensors() const;
  bool is_list() const;
  bool is_number() const;  // int, float, bool or Scalar
  bool is_optional() const;

  // As the model has it: "int[]", "(Tensor, Tensor)", "element".
  std::string text() const;
  // As messages have it: "a tensor", "a list of numbers".
  std::string words() const;
};

std::string words_for(const schema::Type& type);

// The type of values of which some are of the one and some of the other; Unknown where there is
// none.
ExprType common(const ExprType& a, const ExprType& b);

// Whether a value can be given for a parameter.
enum class Fit { Never, Converted, Exactly };
Fit fits(const ExprType& value, const schema::Type& parameter);

// How messages tell the two apart: by words where these differ, else by the types' names.
struct Told {
  std::string wanted, got;
};
Told tell_apart(const schema::Type& wanted, const ExprType& got);

}  // namespace treadle::schemac
