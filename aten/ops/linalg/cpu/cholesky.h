// Cholesky's factors by blocks.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/ops/linalg/cpu/blocks.h"

namespace treadle::cpu {

// The lower triangle of `a` becomes the L with L L^T = a, and the upper one is overwritten. The
// result is 0, or the order (from 1) of the first leading minor that is not positive.
template <class T>
int cholesky_by_blocks(const Block<T>& a);

}  // namespace treadle::cpu
