// Derivatives of products whose factors are scattered over a tensor.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/gradients_products.h"

#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/mul.h"
#include "aten/ops/sub.h"
#include "aten/ops/to.h"
#include "aten/ops/where.h"

namespace treadle::autograd {

Tensor product_without(const Tensor& factor, const ProductParts& all) {
  const Tensor is_zero = aten::eq(factor, 0);
  const Tensor zeros = aten::sub(all.zeros, aten::to(is_zero, all.zeros.dtype()));
  const Tensor sum = aten::sub(all.sum, aten::where(is_zero, factor, Scalar(0)));
  const Tensor product = aten::div(all.product, aten::masked_fill(factor, is_zero, 1));
  return aten::where(aten::eq(zeros, 0), product,
                     aten::where(aten::eq(zeros, 1), aten::mul(sum, product), Scalar(0)));
}

}  // namespace treadle::autograd
