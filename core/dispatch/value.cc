// The names of the kinds of a Value, for messages.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/dispatch/value.h"

namespace treadle {

std::string_view Value::type_name() const {
  // In the order of Variant.
  static constexpr std::string_view kNames[] = {
      "None",   "Tensor", "bool",         "int",       "float",    "Scalar",
      "str",    "int[]",  "float[]",      "bool[]",    "Tensor[]", "ScalarType",
      "Layout", "Device", "MemoryFormat", "Generator", "Scalar[]"};
  static_assert(std::size(kNames) == std::variant_size_v<Variant>);
  return kNames[v_.index()];
}

void Value::wrong_type(const Value& expected) const {
  fail<ErrorKind::Type>("expected a value of type ", expected.type_name(), ", got ", type_name());
}

}  // namespace treadle
