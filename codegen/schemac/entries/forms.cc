// Schema -> schema, one function for each form.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/entries/forms.h"

#include <algorithm>
#include <set>
#include <utility>

namespace treadle::schemac {
namespace {

using schema::Alias;
using schema::Argument;
using schema::FunctionSchema;
using schema::Return;

Alias written(std::string set) {
  Alias alias;
  alias.before = {std::move(set)};
  alias.after = alias.before;
  alias.write = true;
  return alias;
}

bool is_plain_tensor(const schema::Type& type) {
  return type.is_tensor() && !type.list && !type.optional;
}

bool returns_alias(const FunctionSchema& schema) {
  return std::any_of(schema.returns.begin(), schema.returns.end(),
                     [](const Return& result) { return result.type.alias.has_value(); });
}

// The names that the arguments of the out form have: `out`, or those of the results, or out0, out1,
// ...
std::vector<std::string> out_names(const FunctionSchema& schema) {
  if (schema.returns.size() == 1) return {"out"};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < schema.returns.size(); ++i) {
    const std::string& name = schema.returns[i].name;
    names.push_back(name.empty() ? "out" + std::to_string(i) : name);
  }
  return names;
}

// Names of alias sets that the schema does not use yet: a, b, c, ...
class FreshSets {
 public:
  explicit FreshSets(const FunctionSchema& schema) {
    for (const Argument& argument : schema.arguments) {
      if (!argument.type.alias) continue;
      used_.insert(argument.type.alias->before.begin(), argument.type.alias->before.end());
      used_.insert(argument.type.alias->after.begin(), argument.type.alias->after.end());
    }
  }
  std::string next() {
    while (true) {
      // a ... z, then a1 ... z1, and so on.
      std::string name(1, static_cast<char>('a' + count_ % 26));
      if (count_ >= 26) name += std::to_string(count_ / 26);
      ++count_;
      if (used_.insert(name).second) return name;
    }
  }

 private:
  std::set<std::string> used_;
  int count_ = 0;
};

}  // namespace

std::optional<FormProblem> inplace_problem(const FunctionSchema& schema) {
  if (schema.arguments.empty() || schema.arguments[0].name != "self" ||
      !is_plain_tensor(schema.arguments[0].type)) {
    return FormProblem{"has no in-place form: its first argument is not 'Tensor self'",
                       "remove 'inplace', or make 'Tensor self' the first argument"};
  }
  if (schema.returns.size() != 1 || !is_plain_tensor(schema.returns[0].type)) {
    return FormProblem{"has no in-place form: it does not return one Tensor", "remove 'inplace'"};
  }
  if (schema.name.base.ends_with('_')) {
    return FormProblem{"has no in-place form: its name ends with '_' already", "remove 'inplace'"};
  }
  return std::nullopt;
}

std::optional<FormProblem> out_problem(const FunctionSchema& schema) {
  const bool tensors =
      std::all_of(schema.returns.begin(), schema.returns.end(),
                  [](const Return& result) { return is_plain_tensor(result.type); });
  if (schema.returns.empty() || !tensors) {
    return FormProblem{"has no out form: it returns something else than tensors", "remove 'out'"};
  }
  if (returns_alias(schema)) {
    return FormProblem{"has no out form: its result shares memory with an argument",
                       "remove 'out'"};
  }
  for (const std::string& name : out_names(schema)) {
    if (schema.find_argument(name)) {
      return FormProblem{"has no out form: it has an argument '" + name + "' already",
                         "rename the argument"};
    }
  }
  return std::nullopt;
}

FunctionSchema inplace_form(const FunctionSchema& schema) {
  FunctionSchema result = schema;
  result.name.base += '_';
  const std::string set =
      schema.arguments[0].type.alias ? schema.arguments[0].type.alias->before[0] : "a";
  result.arguments[0].type.alias = written(set);
  result.returns[0].type.alias = written(set);
  return result;
}

FunctionSchema out_form(const FunctionSchema& schema) {
  FunctionSchema result = schema;
  result.name.overload = schema.name.overload.empty() ? "out" : schema.name.overload + "_out";
  FreshSets sets(schema);
  const std::vector<std::string> names = out_names(schema);
  for (std::size_t i = 0; i < names.size(); ++i) {
    Argument argument;
    argument.name = names[i];
    argument.kwarg_only = true;
    argument.type.alias = written(sets.next());
    result.returns[i].type.alias = argument.type.alias;
    result.arguments.push_back(std::move(argument));
  }
  return result;
}

bool writes_argument(const FunctionSchema& schema) {
  return std::any_of(schema.arguments.begin(), schema.arguments.end(),
                     [](const Argument& argument) { return argument.type.writes(); });
}

std::string form_as_written(const FunctionSchema& schema) {
  if (!writes_argument(schema)) return "functional";
  const bool positional = std::any_of(
      schema.arguments.begin(), schema.arguments.end(),
      [](const Argument& argument) { return argument.type.writes() && !argument.kwarg_only; });
  return positional ? "inplace" : "out";
}

}  // namespace treadle::schemac
