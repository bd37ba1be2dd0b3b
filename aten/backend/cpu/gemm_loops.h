// Products of matrices by vector code, on one thread: the part of gemm.cc that is compiled for each
// target.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cpu/gemm.h"

namespace treadle::simd {

// c = alpha A B + beta c, where c has the strides `c_row` and `c_column`. T is float, double, Half
// or BFloat16. `in_lanes`: the order of additions for a B of one column and an A with contiguous
// rows. The whole product chooses it, not a part, which may happen to have one column.
template <class T>
using MultiplyLoop = void (*)(const cpu::MatrixView<T>& a, const cpu::MatrixView<T>& b,
                              cpu::Factor<T>* c, int64_t c_row, int64_t c_column,
                              cpu::Factor<T> alpha, cpu::Factor<T> beta, bool in_lanes);

template <class T>
MultiplyLoop<T> multiply_loop();

}  // namespace treadle::simd
