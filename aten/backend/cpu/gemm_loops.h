// Products of matrices by vector code, on one thread: the part of gemm.cc that is compiled for each
// target.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cpu/gemm.h"

namespace treadle::simd {

// c = alpha A B + beta c, where c has the strides `c_row` and `c_column`. T is float, double, Half
// or BFloat16.
template <class T>
using MultiplyLoop = void (*)(const cpu::MatrixView<T>& a, const cpu::MatrixView<T>& b,
                              cpu::Factor<T>* c, int64_t c_row, int64_t c_column,
                              cpu::Factor<T> alpha, cpu::Factor<T> beta);

template <class T>
MultiplyLoop<T> multiply_loop();

}  // namespace treadle::simd
