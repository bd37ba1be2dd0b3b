// The functions that formulas call: operators, and the helpers of autograd/formulas.yaml.
//
//   callables.find("sum_to")->at(0).schema.arguments[1].type    // int[]
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/schemac/model.h"
#include "core/schema/function_schema.h"

namespace treadle::schemac {

struct Callable {
  Callee callee;
  schema::FunctionSchema schema;
  LinearIn linear;  // of a helper

  std::string text() const;   // as a message shows it
  std::size_t least() const;  // number of arguments
};

class Callables {
 public:
  // A form of an operator, by the name that its C++ function has.
  void add(const schema::FunctionSchema& schema, const std::string& form, const std::string& entry);
  void add(const Helper& helper);
  // All that a model written by schemac holds.
  void add_model(const std::string& json);

  // The overloads; nullptr for an unknown name.
  const std::vector<Callable>* find(const std::string& name) const;
  // The overload that a call goes to.
  const Callable* find(const Callee& callee) const;
  std::vector<std::string> names() const;
  // Whether all functions are known, so that an unknown one is an error.
  bool complete() const { return complete_; }
  void set_complete() { complete_ = true; }

 private:
  std::map<std::string, std::vector<Callable>> functions_;
  bool complete_ = false;
};

}  // namespace treadle::schemac
