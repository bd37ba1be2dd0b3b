// QR by Householder's reflectors: H = I - tau v v^T, where v is zero above its diagonal element,
// which is 1 and not stored (LAPACK Users' Guide, "Representation of Orthogonal or Unitary
// Matrices"). Matrices are stored by rows if nothing else is said.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/ops/linalg/cpu/blocks.h"
#include "aten/ops/linalg/cpu/column_loops.h"

namespace treadle::cpu {

// Reflectors are applied together: H1 ... Hk = I - V T V^T, with T upper triangular. The T of each
// block of kReflectors is stored by rows, below the one before.
inline constexpr int64_t kReflectors = 64;

// Whether reflectors are applied by blocks: k of them, of m elements.
constexpr bool has_blocks(int64_t m, int64_t k) {
  return k > simd::kMostColumns && m * k >= kLeastBlocked * kLeastBlocked;
}
// Few columns have a loop of their own, unless they are short.
constexpr bool is_narrow(int64_t m, int64_t n) {
  constexpr int64_t kShort = 256;
  return n <= simd::kMostColumns && m >= kShort;
}
// A matrix for which one of these holds, and whose rows follow each other, becomes R and the
// reflectors below it, in `to`, which may be `from`.
template <class T>
void factor_rows(Block<const T> from, const Block<T>& to, T* tau);

// At most simd::kMostColumns columns, of a matrix stored by columns, become R and the reflectors
// below it.
template <class T>
void factor_columns(const Block<T>& a, T* tau);
// Of one stored by rows, in `to`, which may be `from`.
template <class T>
void factor_narrow_rows(Block<const T> from, const Block<T>& to, T* tau);

// `a` becomes R and the reflectors below it. `factors` gets the T of each block.
template <class T>
void factor_by_blocks(const Block<T>& a, T* tau, T* factors);

// The T of each block of the reflectors in the columns of v.
template <class T>
void reflector_factors(Block<const T> v, const T* tau, T* factors);

// c = Q c, or Q^T c.
template <class T>
void apply_reflectors(Block<const T> v, const T* factors, bool transposed, const Block<T>& c);

// The first columns of Q, at least as many as there are reflectors.
template <class T>
void first_columns_of_q(Block<const T> v, const T* factors, const Block<T>& q);

}  // namespace treadle::cpu
