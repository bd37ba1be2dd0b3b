// LDL factors by blocks.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/ops/linalg/cpu/blocks.h"

namespace treadle::cpu {

// The lower triangle of the symmetric `a`, which is stored by columns, becomes the factors of
// P a P^T = L D L^T, and the upper one is overwritten. D has blocks of 1 x 1 and 2 x 2; LAPACK's
// manual of sytrf describes them and the pivots. The result is 0, or the position (from 1) of the
// first zero on the diagonal of D.
template <class T>
int ldl_by_blocks(const Block<T>& a, int* pivots);

}  // namespace treadle::cpu
