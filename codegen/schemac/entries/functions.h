// Reads native_functions.yaml into the model.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/schemac/diagnostics.h"
#include "codegen/schemac/expressions/scalar_functions.h"
#include "codegen/schemac/model.h"
#include "codegen/schemac/yaml_file.h"

namespace treadle::schemac {

// Reports errors, and leaves their entries out. `library` is the namespace of the operators;
// empty for Treadle's own; `functions` are those that expressions of elements may call.
Model read_functions(const YamlFile& file, const std::string& library,
                     const ScalarFunctions& functions, Diagnostics& diagnostics);

}  // namespace treadle::schemac
