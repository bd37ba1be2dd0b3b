// The table of methods.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/schema/methods.h"

#include <algorithm>

namespace treadle::schema {

std::span<const MethodInfo> methods() {
  const auto make = [] {
    const Type truth = parse_type("bool"), number = parse_type("int"),
               numbers = parse_type("int[]");
    const Type dtype = parse_type("ScalarType"), device = parse_type("Device");
    using enum MethodOf;
    return std::vector<MethodInfo>{
        {Tensor, "defined", {}, truth, "", "defined"},
        {Tensor, "device", {}, device, "device", "device"},
        {Tensor, "dim", {}, number, "dim", "dim"},
        {Tensor, "dtype", {}, dtype, "dtype", "dtype"},
        {Tensor, "is_complex", {}, truth, "", "is_complex"},
        {Tensor, "is_floating_point", {}, truth, "", "is_floating_point"},
        {Tensor, "numel", {}, number, "numel", "numel"},
        {Tensor, "scalar_type", {}, dtype, "dtype", "dtype"},
        {Tensor, "size", {number}, number, "sizes", "size"},
        {Tensor, "sizes", {}, numbers, "sizes", "sizes"},
        {Tensor, "stride", {number}, number, "", "stride"},
        {Tensor, "strides", {}, numbers, "strides", "strides"},
        {List, "empty", {}, truth, "", "empty"},
        {List, "size", {}, number, "", "size"},
        {Scalar, "is_integral", {}, truth, "", "is_integral"},
    };
  };
  static const std::vector<MethodInfo> table = make();
  return table;
}

const MethodInfo* find_method(MethodOf of, std::string_view name) {
  const auto all = methods();
  const auto found = std::find_if(all.begin(), all.end(), [&](const MethodInfo& method) {
    return method.of == of && method.name == name;
  });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> method_names(MethodOf of) {
  std::vector<std::string> names;
  for (const MethodInfo& method : methods()) {
    if (method.of == of) names.emplace_back(method.name);
  }
  return names;
}

std::string_view name_of(MethodOf of) {
  constexpr std::string_view kNames[] = {"tensor", "list", "scalar"};
  return kNames[static_cast<std::size_t>(of)];
}

}  // namespace treadle::schema
