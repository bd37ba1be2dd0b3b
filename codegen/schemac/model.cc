// Names used by the model.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/model.h"

namespace treadle::schemac {

std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[] = {"pointwise", "reduce",    "view",    "kernel",
                                         "returns",   "composite", "mutating"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(Callee::Kind kind) {
  constexpr std::string_view kNames[] = {"operator",  "helper", "method", "scalar",
                                         "condition", "shape",  "word"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string identifier_of(const schema::OperatorName& name) {
  if (!name.overload.empty()) return name.base + "_" + name.overload;
  // A struct `std` would hide the standard library from the code around it.
  return name.base == "std" ? "std_" : name.base;
}

}  // namespace treadle::schemac
