// LU factors by blocks.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/ops/linalg/cpu/blocks.h"

namespace treadle::cpu {

// `a`, which is stored by rows, becomes the factors of P a = L U: L, whose diagonal is 1, below the
// diagonal, and U. Row i was exchanged with row pivots[i] - 1, in order. The result is 0, or the
// position (from 1) of the first zero on the diagonal of U.
template <class T>
int lu_by_blocks(const Block<T>& a, int* pivots);

// Exchanges rows of `b`, stored by rows, as `count` pivots say.
template <class T>
void exchange_rows(const Block<T>& b, const int* pivots, int64_t count);

}  // namespace treadle::cpu
