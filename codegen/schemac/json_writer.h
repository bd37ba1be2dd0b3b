// Writes the model as opmodel.json: canonical, in the order of the files, for the renderer and for
// diffs.
#pragma once

#include <string>
#include <vector>

#include "codegen/schemac/model.h"

namespace treadle::schemac {

// `derivatives` is empty where there is no such file; `helpers` are the declarations of functions
// that formulas may call beside operators.
std::string to_json(const Model& model, const std::string& functions,
                    const std::string& derivatives, const std::vector<std::string>& helpers);

}  // namespace treadle::schemac
