// Reads derivatives.yaml into the model and checks it against the operators.
//
//   - name: mul.Tensor(Tensor self, Tensor other) -> Tensor
//     self: grad * other
//     other: grad * self
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/schemac/derivatives/callables.h"
#include "codegen/schemac/diagnostics.h"
#include "codegen/schemac/model.h"
#include "codegen/schemac/yaml_file.h"

namespace treadle::schemac {

// `functions` is the path of native_functions.yaml, for messages; `library` the namespace of the
// operators, empty for Treadle's own; `callables` what formulas may call. Arguments of pointwise
// operators may go without a formula where `derivation` has one.
void read_derivatives(const YamlFile& file, const std::string& functions,
                      const std::string& library, const Callables& callables, Model& model,
                      Diagnostics& diagnostics);

}  // namespace treadle::schemac
