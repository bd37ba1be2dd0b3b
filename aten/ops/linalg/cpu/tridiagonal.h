// Symmetric matrices, reduced to tridiagonal ones.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/ops/linalg/cpu/blocks.h"

namespace treadle::cpu {

// Q^T a Q is tridiagonal, with `diagonal` and `beside` it. `a` is stored by columns, and its lower
// triangle is read. Q is the product of reflectors, whose vectors replace the columns of `a` below
// the diagonal, with their `tau`: there is one less than columns.
template <class T>
void tridiagonal_by_blocks(const Block<T>& a, T* diagonal, T* beside, T* tau);

}  // namespace treadle::cpu
