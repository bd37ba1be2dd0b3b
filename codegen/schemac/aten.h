// Reads PyTorch's own native_functions.yaml, to show that our grammar holds its grammar.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "codegen/schemac/diagnostics.h"
#include "codegen/schemac/yaml_file.h"

namespace treadle::schemac {

struct AtenCount {
  std::size_t entries = 0;
  std::size_t same = 0;  // parsed, and printed back as they were
};

AtenCount read_aten(const YamlFile& file, Diagnostics& diagnostics);

}  // namespace treadle::schemac
