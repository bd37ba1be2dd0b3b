// Derivatives of systems with a triangular compressed matrix.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/sparse/gradients_triangular.h"

#include "aten/ops/_csr_sampled_mm.h"
#include "aten/ops/_csr_transposed.h"
#include "aten/ops/_csr_triangular_solve.h"
#include "aten/ops/arange.h"
#include "aten/ops/conj.h"
#include "aten/ops/diff.h"
#include "aten/ops/gt.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/neg.h"
#include "aten/ops/repeat_interleave.h"
#include "aten/ops/sub.h"

namespace treadle::autograd {

Tensor csr_triangular_solve_grad_other(const Tensor& grad, const Tensor& values, const Tensor& crow,
                                       const Tensor& col, bool upper, bool unitriangular) {
  const auto [ccol, row, turned] = aten::_csr_transposed(values, crow, col, grad.size(0));
  return aten::_csr_triangular_solve(aten::conj(turned), ccol, row, grad, !upper, unitriangular);
}

Tensor csr_triangular_solve_grad_values(const Tensor& grad, const Tensor& values,
                                        const Tensor& crow, const Tensor& col, const Tensor& result,
                                        bool upper, bool unitriangular) {
  const Tensor of_b =
      csr_triangular_solve_grad_other(grad, values, crow, col, upper, unitriangular);
  const Tensor each = aten::neg(aten::_csr_sampled_mm(of_b, aten::conj(result), crow, col));
  const Tensor rows = aten::repeat_interleave(
      aten::arange(Scalar(grad.size(0)), ScalarType::Int64, std::nullopt, grad.device()),
      aten::diff(crow), 0);
  // How far an entry is from the diagonal, on the side of the matrix that is not read.
  const Tensor beyond = upper ? aten::sub(rows, col) : aten::sub(col, rows);
  const Scalar nearest(unitriangular ? -1 : 0);
  return aten::masked_fill(each, aten::gt(beyond, nearest), Scalar(0));
}

}  // namespace treadle::autograd
