// Derivatives of reindex_reduce.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/gradients_reindex.h"

#include "aten/ops/conj.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/indexing/gradients_products.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/mul.h"
#include "aten/ops/reindex.h"
#include "aten/ops/reindex_reduce.h"
#include "aten/ops/to.h"
#include "aten/ops/where.h"

namespace treadle::autograd {

Tensor reindex_reduce_backward(const Tensor& grad, const Tensor& self, std::string_view op,
                               IntList shape, std::string_view indices, const Tensor& result) {
  const auto read = [&](const Tensor& t) { return aten::reindex(t, self.sizes(), indices, 0); };
  const auto combined = [&](const Tensor& t, std::string_view how) {
    return aten::reindex_reduce(t, how, shape, indices);
  };
  if (op == "sum") return read(grad);
  if (op == "prod") {
    const Tensor is_zero = aten::eq(self, 0);
    const ProductParts all{combined(aten::to(is_zero, self.dtype()), "sum"),
                           combined(aten::where(is_zero, self, Scalar(0)), "sum"),
                           combined(aten::masked_fill(self, is_zero, 1), "prod")};
    const Tensor others =
        product_without(self, {read(all.zeros), read(all.sum), read(all.product)});
    return aten::mul(read(grad), aten::conj(others));
  }
  const Tensor equal = aten::to(aten::eq(self, read(result)), grad.dtype());
  const Tensor counts = combined(equal, "sum");
  const Tensor share = aten::div(grad, aten::masked_fill(counts, aten::eq(counts, 0), 1));
  return aten::mul(equal, read(share));
}

}  // namespace treadle::autograd
