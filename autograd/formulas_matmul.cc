// Gradients of matrix products, conjugated where they are complex.
#include "autograd/formulas_matmul.h"

#include "aten/ops/conj.h"
#include "aten/ops/mul.h"
#include "aten/ops/transpose.h"

namespace treadle::autograd {

Tensor adjoint(const Tensor& t) {
  const Tensor swapped = aten::transpose(t, -2, -1);
  return t.is_complex() ? aten::conj(swapped) : swapped;
}

Tensor scaled(const Tensor& grad, const Scalar& factor) {
  return factor.equal(1) ? grad : aten::mul(grad, factor.conj());
}

}  // namespace treadle::autograd
