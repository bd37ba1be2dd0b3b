// Products of matrices by vector code, on one thread: the part of gemm.cc that is compiled for each
// target.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cpu/gemm.h"

namespace treadle::simd {

// Two neighbouring terms of a sum of bfloat16 numbers. Processors with AVX512_BF16 multiply two of
// these, and add both products to a float, in one step (VDPBF16PS). The step takes subnormal
// numbers for zeros, and rounds after each product.
struct BFloat16Pair {
  BFloat16 first, second;
};
static_assert(sizeof(BFloat16Pair) == 4);

template <class T>
using SumType = std::conditional_t<std::is_same_v<T, BFloat16Pair>, float, cpu::Factor<T>>;

// c = alpha A B + beta c, where c has the strides `c_row` and `c_column`. T is float, double, Half,
// BFloat16 or BFloat16Pair. `in_lanes`: the order of additions for a B of one column and an A with
// contiguous rows. The whole product chooses it, not a part, which may happen to have one column.
template <class T>
using MultiplyLoop = void (*)(const cpu::MatrixView<T>& a, const cpu::MatrixView<T>& b,
                              SumType<T>* c, int64_t c_row, int64_t c_column, SumType<T> alpha,
                              SumType<T> beta, bool in_lanes);

template <class T>
MultiplyLoop<T> multiply_loop();

// to = sums + factor addend, of which elements lie `step` apart. Without an addend: null. T is Half
// or BFloat16.
template <class T>
using PutSums = void (*)(const float* sums, int64_t count, float factor, const T* addend,
                         int64_t step, T* to);

template <class T>
PutSums<T> put_sums();

// Rows of bfloat16 numbers, contiguous, of which two by two make a row of pairs. A last single row
// is paired with zeros.
struct PairedRows {
  const BFloat16* data;
  int64_t rows, cols, row_stride;  // of single rows
  int64_t pairs() const { return (rows + 1) / 2; }
};

// Loops for pairs; each order of additions is that of `multiply`.
struct PairLoops {
  static constexpr int64_t kFewRows = 4;
  MultiplyLoop<BFloat16Pair> multiply;
  // alpha A B + beta c for an A of at most kFewRows rows; B is read once.
  void (*multiply_few)(const cpu::MatrixView<BFloat16Pair>& a, const PairedRows& b, float* c,
                       int64_t c_row, float alpha, float beta);
  // to[i] = {first[i], second[i]}, or {first[i], 0} without `second`.
  void (*interleave)(const BFloat16* first, const BFloat16* second, int64_t count,
                     BFloat16Pair* to);
};

// Null where the processor has no step for pairs.
const PairLoops* pair_loops();

}  // namespace treadle::simd
