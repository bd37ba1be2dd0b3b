// Writes the model as opmodel.json: canonical, in the order of the files, for the renderer and for
// diffs.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "codegen/schemac/model.h"

namespace treadle::schemac {

// The paths are as they were given; `derivatives` is empty where there is no such file.
std::string to_json(const Model& model, const std::string& functions,
                    const std::string& derivatives);

}  // namespace treadle::schemac
