// The methods that expressions may call: those of tensors that need no elements, those of lists,
// and those of numbers.
//
//   self.size(0)   find_method(MethodOf::Tensor, "size")->result  // int
//
// No other table lists them. schemac writes it into the model, where the generator reads it. Any
// other method of a tensor in a formula is the operator of that name.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/schema/type.h"

namespace treadle::schema {

enum class MethodOf { Tensor, List, Scalar };

struct MethodInfo {
  MethodOf of = MethodOf::Tensor;
  std::string_view name;
  std::vector<Type> parameters;
  Type result;
  // The piece of metadata that backward saves of a tensor on which only such methods are called;
  // empty for a method that needs the tensor.
  std::string_view saves;
  std::string_view cpp;  // the method's name in C++
};

// In the order of their names, methods of tensors first.
std::span<const MethodInfo> methods();
// nullptr for an unknown name.
const MethodInfo* find_method(MethodOf of, std::string_view name);
std::vector<std::string> method_names(MethodOf of);

// "tensor", "list" or "scalar".
std::string_view name_of(MethodOf of);

}  // namespace treadle::schema
