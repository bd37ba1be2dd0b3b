// Finds what each part of an expression has for a value, and reports what cannot be: a call with
// other arguments than the function takes, a method that its object does not have, a tensor where a
// number must be.
#pragma once

#include <functional>
#include <string>

#include "codegen/schemac/callables.h"
#include "codegen/schemac/diagnostics.h"
#include "codegen/schemac/model.h"

namespace treadle::schemac {

struct Value {
  ValueKind kind = ValueKind::Unknown;
  std::size_t results = 1;  // of Several
};

// What names have for a value; Unknown for those that are reported elsewhere.
using Names = std::function<Value(const std::string&)>;

// The value of a formula. `where` is "the formula for 'self' of cos".
Value check_formula(const Expression& formula, const Names& names, const Callables& callables,
                    const std::string& where, Diagnostics& diagnostics);

// Reports methods that an argument does not have, and comparisons of tensors and of nothing, in a
// condition or in the arguments of a shape rule.
void check_metadata(const Expression& expression, const Operator& op, const std::string& where,
                    Diagnostics& diagnostics);

}  // namespace treadle::schemac
