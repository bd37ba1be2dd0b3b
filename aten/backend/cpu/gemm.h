// gemm: C = alpha * A @ B + beta * C for one or many matrices, with the same bits at any thread
// count.
//
// Floating point runs on vector code (gemm_loops.h); the 16-bit floats are widened to float, or
// bfloat16 numbers multiplied in pairs, where the processor can (see BFloat16Pair).
// Complex numbers run on OpenBLAS, with one thread for each fixed tile of C. Integers run on a
// plain loop. Any strides are accepted.
//
// A row of C has the same bits whatever other rows A has, unless the numbers are complex.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::cpu {

// A matrix of `rows` x `cols` elements; strides in elements, any sign.
template <class T>
struct MatrixView {
  const T* data;
  int64_t rows, cols, row_stride, col_stride;
};

// The type of alpha and beta. The 16-bit floats would round them.
template <class T>
using Factor = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

// `c` is row-major with leading dimension `ldc`. With beta == 0 its old contents are not read.
template <class T>
void gemm(MatrixView<T> a, MatrixView<T> b, T* c, int64_t ldc, Factor<T> alpha, Factor<T> beta);

// A matrix to add; a stride of 0 repeats a row or a column.
template <class T>
struct Addend {
  const T* data;
  int64_t row, column;
};

// c = alpha A B + beta addend, where T is Half or BFloat16: each sum is rounded once. The addend is
// c itself, or lies elsewhere.
template <class T>
void gemm(MatrixView<T> a, MatrixView<T> b, T* c, int64_t ldc, float alpha, float beta,
          Addend<T> addend);

}  // namespace treadle::cpu
