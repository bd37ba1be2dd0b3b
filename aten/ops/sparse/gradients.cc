// Derivatives of products with compressed sparse matrices.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/sparse/gradients.h"

#include "aten/ops/_csr_coordinates.h"
#include "aten/ops/_csr_mm.h"
#include "aten/ops/_csr_row_dots.h"
#include "aten/ops/_csr_transposed.h"
#include "aten/ops/conj.h"
#include "aten/ops/sparse/contents.h"

namespace treadle::autograd {

Tensor csr_dense_backward(const Tensor& grad, const Tensor& crow, const Tensor& col, bool by_rows) {
  return sparse::picked(grad, aten::_csr_coordinates(crow, col, by_rows));
}

Tensor csr_transposed_backward(const Tensor& grad, const Tensor& ccol, const Tensor& row,
                               int64_t rows) {
  return std::get<2>(aten::_csr_transposed(grad, ccol, row, rows));
}

Tensor csr_mm_grad_dense(const Tensor& grad, const Tensor& values, const Tensor& crow,
                         const Tensor& col, int64_t rows) {
  const auto [ccol, row, turned] = aten::_csr_transposed(values, crow, col, rows);
  return aten::_csr_mm(aten::conj(turned), ccol, row, grad);
}

Tensor csr_spgemm_grad_first(const Tensor& grad, const Tensor& crow, const Tensor& col,
                             const Tensor& values2, const Tensor& crow2, const Tensor& col2,
                             const Tensor& crow1, const Tensor& col1) {
  return aten::_csr_row_dots(grad, crow, col, aten::conj(values2), crow2, col2, crow1, col1);
}

Tensor csr_spgemm_grad_second(const Tensor& grad, const Tensor& crow, const Tensor& col,
                              const Tensor& values1, const Tensor& crow1, const Tensor& col1,
                              const Tensor& crow2, const Tensor& col2, int64_t columns) {
  const auto [starts, rows, turned] = aten::_csr_transposed(grad, crow, col, columns);
  const auto [starts1, rows1, turned1] =
      aten::_csr_transposed(values1, crow1, col1, crow2.numel() - 1);
  return aten::_csr_row_dots(aten::conj(turned1), starts1, rows1, turned, starts, rows, crow2,
                             col2);
}

}  // namespace treadle::autograd
