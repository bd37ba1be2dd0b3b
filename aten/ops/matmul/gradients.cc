// Gradients of matrix products, conjugated where they are complex.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/matmul/gradients.h"

#include "aten/ops/conj.h"
#include "aten/ops/mm.h"
#include "aten/ops/mul.h"
#include "aten/ops/neg.h"
#include "aten/ops/transpose.h"

namespace treadle::autograd {

Tensor adjoint(const Tensor& t) {
  const Tensor swapped = aten::transpose(t, -2, -1);
  return t.is_complex() ? aten::conj(swapped) : swapped;
}

Tensor mm_laid_out(const Tensor& a, const Tensor& b, IntList strides) {
  const bool by_columns = strides[0] == 1 && strides[1] > 1;
  if (!by_columns) return aten::mm(a, b);
  return aten::transpose(aten::mm(aten::transpose(b, 0, 1), aten::transpose(a, 0, 1)), 0, 1);
}

Tensor scaled(const Tensor& grad, const Scalar& factor) {
  if (factor.equal(1)) return grad;
  return factor.equal(-1) ? aten::neg(grad) : aten::mul(grad, factor.conj());
}

}  // namespace treadle::autograd
