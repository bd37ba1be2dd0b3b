// Derivatives of products with compressed sparse matrices.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// Of A as a strided matrix: the elements of the gradient at the entries.
Tensor csr_dense_backward(const Tensor& grad, const Tensor& crow, const Tensor& col, bool by_rows);
// Of the values of A by columns by those by rows: the gradient, by rows again.
Tensor csr_transposed_backward(const Tensor& grad, const Tensor& ccol, const Tensor& row,
                               int64_t rows);
// Of A @ x by x (rows, m): the conjugate transpose of A, times the gradient (n, m).
Tensor csr_mm_grad_dense(const Tensor& grad, const Tensor& values, const Tensor& crow,
                         const Tensor& col, int64_t rows);
// Of C = A @ B by the values of A: at each entry (i, k) row i of the gradient times row k of B.
// `grad` is the gradient of the values of C, whose pattern is (crow, col).
Tensor csr_spgemm_grad_first(const Tensor& grad, const Tensor& crow, const Tensor& col,
                             const Tensor& values2, const Tensor& crow2, const Tensor& col2,
                             const Tensor& crow1, const Tensor& col1);
// By the values of B: at each entry (k, j) column k of A times column j of the gradient.
Tensor csr_spgemm_grad_second(const Tensor& grad, const Tensor& crow, const Tensor& col,
                              const Tensor& values1, const Tensor& crow1, const Tensor& col1,
                              const Tensor& crow2, const Tensor& col2, int64_t columns);

}  // namespace treadle::autograd
