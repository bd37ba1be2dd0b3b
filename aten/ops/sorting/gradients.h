// Helpers for formulas of sorting.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// The first element of each run of equal ones gets the gradient of the run's value.
Tensor unique_runs_backward(const Tensor& grad, const Tensor& self);

}  // namespace treadle::autograd
