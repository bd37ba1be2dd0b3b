// Reads autograd/formulas.yaml: the functions written by hand that formulas may call.
//
//   - func: sum_to(Tensor grad, int[] sizes) -> Tensor
//     linear: grad
//   - func: lstm_cell_backward(Tensor grad_h, Tensor grad_c, Tensor gates) -> (Tensor, Tensor)
//     linear: grad_h + grad_c            # in the two together
//   - func: mm_laid_out(Tensor a, Tensor b, int[] strides) -> Tensor
//     linear: [a, b]                     # in each while the other is held
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "codegen/schemac/diagnostics.h"
#include "codegen/schemac/model.h"
#include "codegen/schemac/yaml_file.h"

namespace treadle::schemac {

// The helpers of a library are in its own namespace; `library` is empty for Treadle's.
std::vector<Helper> read_helpers(const YamlFile& file, const std::string& library,
                                 Diagnostics& diagnostics);

}  // namespace treadle::schemac
