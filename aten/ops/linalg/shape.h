// Shape rules of linear algebra: matrices in the last two dimensions, batches before them.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include "aten/engine/structured.h"
#include "aten/ops/_cdist.h"
#include "aten/ops/_linalg_cholesky.h"
#include "aten/ops/_linalg_eig.h"
#include "aten/ops/_linalg_eigh.h"
#include "aten/ops/_linalg_ldl.h"
#include "aten/ops/_linalg_lu.h"
#include "aten/ops/_linalg_solve.h"
#include "aten/ops/_linalg_svd.h"
#include "aten/ops/_lu_permutation.h"
#include "aten/ops/geqrf.h"
#include "aten/ops/linalg_householder_product.h"
#include "aten/ops/linalg_ldl_solve.h"
#include "aten/ops/linalg_matrix_exp.h"
#include "aten/ops/linalg_qr.h"
#include "aten/ops/linalg_solve_triangular.h"
#include "aten/ops/ormqr.h"

namespace treadle::shape {

// The operator's name in Python: "_linalg_svd" and "linalg_svd" -> "linalg.svd".
std::string shown_linalg(std::string_view op);
// A matrix, or a batch of them.
void require_matrix(std::string_view op, const char* name, const Tensor& t);
void require_square(std::string_view op, const Tensor& t);
// The broadcast batch dimensions of two tensors, without their last two dimensions.
DimVector broadcast_batches(std::string_view op, const Tensor& a, const Tensor& b);
// Whether `b` of solve(A, b) is a batch of vectors rather than of matrices.
bool is_vector_rhs(const Tensor& a, const Tensor& b);

std::array<TensorSpec, 2> linalg_cholesky(const char* op, const Tensor& self);  // L, info
std::array<TensorSpec, 3> linalg_lu(const char* op, const Tensor& a);           // LU, pivots, info
std::array<TensorSpec, 3> linalg_ldl(const char* op, const Tensor& self);
std::array<TensorSpec, 2> linalg_qr(const char* op, const Tensor& a, std::string_view mode);
std::array<TensorSpec, 2> geqrf(const char* op, const Tensor& self);
TensorSpec linalg_householder_product(const char* op, const Tensor& input, const Tensor& tau);
TensorSpec ormqr(const char* op, const Tensor& self, const Tensor& input2, const Tensor& input3,
                 bool left);

// A X = B, or X A = B: the solution and info.
std::array<TensorSpec, 2> linalg_solve(const char* op, const Tensor& a, const Tensor& b, bool left);
TensorSpec linalg_solve_triangular(const char* op, const Tensor& a, const Tensor& b, bool left);
TensorSpec linalg_ldl_solve(const char* op, const Tensor& ld, const Tensor& pivots,
                            const Tensor& b);
// The permutation of `rows` rows that `pivots` (..., k) produce, as (..., rows) indices.
TensorSpec lu_permutation(const char* op, const Tensor& pivots, int64_t rows);

// Values in ascending order, vectors in columns. Without vectors the second result has no elements.
std::array<TensorSpec, 2> linalg_eigh(const char* op, const Tensor& a, bool compute_v);
std::array<TensorSpec, 2> linalg_eig(const char* op, const Tensor& a, bool compute_v);
std::array<TensorSpec, 3> linalg_svd(const char* op, const Tensor& a, bool full_matrices,
                                     bool compute_uv);

TensorSpec linalg_matrix_exp(const char* op, const Tensor& self);
// x1 (..., P, M), x2 (..., R, M) -> (..., P, R)
TensorSpec cdist(const char* op, const Tensor& x1, const Tensor& x2);

}  // namespace treadle::shape
