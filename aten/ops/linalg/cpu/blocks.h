// Parts of matrices, for algorithms whose work is done by products of blocks: they run on all
// threads, and their bits do not depend on the number of threads.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "aten/backend/cpu/gemm.h"

namespace treadle::cpu {

// LAPACK factors matrices with fewer rows or columns than this as fast.
inline constexpr int64_t kLeastBlocked = 64;

// A part of a matrix. One of the strides is 1; the matrix itself may be a transposed one.
template <class T>
struct Block {
  T* data;
  int64_t rows, columns, row_stride, column_stride;

  // Rows [i, i + height) and columns [j, j + width).
  Block part(int64_t i, int64_t j, int64_t height, int64_t width) const {
    return {data + i * row_stride + j * column_stride, height, width, row_stride, column_stride};
  }
  Block transposed() const { return {data, columns, rows, column_stride, row_stride}; }
  T& at(int64_t i, int64_t j) const { return data[i * row_stride + j * column_stride]; }
  bool by_rows() const { return column_stride == 1; }
  // The leading dimension. Both strides of a matrix with one row may be 1.
  int64_t pitch() const {
    return by_rows() ? std::max(row_stride, columns) : std::max(column_stride, rows);
  }
  operator Block<const T>() const { return {data, rows, columns, row_stride, column_stride}; }
};
template <class T>
Block<T> rows_block(T* data, int64_t rows, int64_t columns, int64_t pitch) {
  return {data, rows, columns, pitch, 1};
}

// c = alpha a b + beta c
template <class T>
void multiply(const Block<T>& c, T alpha, Block<const T> a, Block<const T> b, T beta) {
  if (!c.by_rows()) return multiply(c.transposed(), alpha, b.transposed(), a.transposed(), beta);
  gemm(MatrixView<T>{a.data, a.rows, a.columns, a.row_stride, a.column_stride},
       MatrixView<T>{b.data, b.rows, b.columns, b.row_stride, b.column_stride}, c.data,
       c.row_stride, alpha, beta);
}

// The first part of a matrix that is cut in two: half of it, in whole vectors.
constexpr int64_t first_half(int64_t n) { return (n / 2 + 15) / 16 * 16; }

// The lower triangle of c -= a b. Elements of the upper one near the diagonal change, too.
template <class T>
void subtract_from_lower(const Block<T>& c, Block<const T> a, Block<const T> b);

// b becomes the x with a x = b, where `a` is a triangle; the rest of `a` is not read.
template <class T>
void solve_triangle(Block<const T> a, bool upper, bool unit, const Block<T>& b);

}  // namespace treadle::cpu
