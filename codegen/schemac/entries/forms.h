// Derives the schemas of an operator's in-place and out= forms from its functional one, with ATen's
// names.
//
//   functional  add.Tensor(Tensor self, Tensor other) -> Tensor
//   inplace     add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
//   out         add.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "core/schema/function_schema.h"

namespace treadle::schemac {

// Why an operator cannot have a form, and what to do.
struct FormProblem {
  std::string message;
  std::string hint;
};

// Empty if `schema` can have an in-place form (an out form).
std::optional<FormProblem> inplace_problem(const schema::FunctionSchema& schema);
std::optional<FormProblem> out_problem(const schema::FunctionSchema& schema);

schema::FunctionSchema inplace_form(const schema::FunctionSchema& schema);
schema::FunctionSchema out_form(const schema::FunctionSchema& schema);

// True if the schema as written writes one of its arguments.
bool writes_argument(const schema::FunctionSchema& schema);
// The form that a schema as written is: "inplace" for copy_(Tensor(a!) self, ...), "out" where what
// it writes are keyword-only arguments, otherwise "functional".
std::string form_as_written(const schema::FunctionSchema& schema);

}  // namespace treadle::schemac
