// Checks the names and the kind of expressions against the operator they belong to.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/schemac/diagnostics.h"
#include "codegen/schemac/model.h"

namespace treadle::schemac {

// The names an expression may use, and how messages call it.
struct Scope {
  std::vector<std::string> names;
  std::string where;  // "check of add.Tensor"
  std::string noun;   // what a name is called there: "argument" or "name"
};

std::vector<std::string> argument_names(const schema::FunctionSchema& schema);

// Whether a name is in the scope or a constant (inf, nan, pi, a dtype).
bool is_known(std::string_view name, const Scope& scope);
// Reports every name that is neither in the scope nor a constant (inf, nan, pi, a dtype).
void check_names(const Expression& expression, const Scope& scope, Diagnostics& diagnostics);

// Reports an expression that is not a condition, such as `stride` or `stride + 1` under `check`,
// a condition of several parts without words, and a call of something else than the functions of
// conditions:
//
//   one_of(side, "left", "right")           the text is one of these
//   any(alpha, beta)                        every value of these arguments is fine
//   message(a > 0 || b > 0, "a or b > 0")   a condition of several parts, and what is expected
//
// Fills in the types of its parts.
void check_condition(Expression& expression, const Operator& op, Diagnostics& diagnostics);

// Reports a condition of several parts that is not in message(): its text is no message for people.
void check_words(const Expression& expression, const Operator& op, Diagnostics& diagnostics);

}  // namespace treadle::schemac
