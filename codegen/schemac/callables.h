// What a formula may call, and with what: operators, and the functions that autograd declares for
// formulas.
//
//   callables.add_header("Tensor sum_to(const Tensor& grad, IntList sizes);");
//   callables.find("sum_to")->at(0).parameters[1].kind    // ValueKind::Numbers
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/schema/function_schema.h"

namespace treadle::schemac {

// What an expression has for a value, as far as it matters where it can stand.
enum class ValueKind {
  Tensor,
  Tensors,  // a list of them
  Number,   // int, float, bool or Scalar
  Numbers,
  Text,
  Dtype,
  Device,
  Several,  // several results
  None,
  Unknown,  // of this nothing is said
};
// "a tensor", "a list of numbers".
std::string_view words_for(ValueKind kind);
ValueKind kind_of(const schema::Type& type);

struct Parameter {
  std::string name;
  ValueKind kind = ValueKind::Unknown;
  bool has_default = false;
  bool optional = false;  // None may stand for it
};

struct Callable {
  std::string text;  // as a message shows it
  std::vector<Parameter> parameters;
  ValueKind result = ValueKind::Unknown;
  std::size_t results = 1;

  std::size_t least() const;  // number of arguments
};

class Callables {
 public:
  // The form of an operator, by the name that its C++ function has.
  void add(const schema::FunctionSchema& schema, const std::string& form);
  // Every function that a C++ header declares in its namespace.
  void add_header(std::string_view text);
  // What a model written by schemac holds of both.
  void add_model(const std::string& json);

  // The overloads; nullptr for an unknown name.
  const std::vector<Callable>* find(const std::string& name) const;
  std::vector<std::string> names() const;
  // The declarations of headers, one line each, for the model.
  const std::vector<std::string>& declarations() const { return declarations_; }
  // Whether functions beside the operators at hand are known, so that an unknown one is an error.
  bool complete() const { return complete_; }

 private:
  void add_declaration(std::string text);

  std::map<std::string, std::vector<Callable>> functions_;
  std::vector<std::string> declarations_;
  bool complete_ = false;
};

}  // namespace treadle::schemac
