// Reads native_functions.yaml into the model.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/schemac/diagnostics.h"
#include "codegen/schemac/model.h"
#include "codegen/schemac/yaml_file.h"

namespace treadle::schemac {

// What is wrong is reported, and the entry left out. `library` is the namespace of the operators;
// empty for Treadle's own.
Model read_functions(const YamlFile& file, const std::string& library, Diagnostics& diagnostics);

}  // namespace treadle::schemac
