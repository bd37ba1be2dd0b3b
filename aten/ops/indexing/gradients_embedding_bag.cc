// The gradient of each mode of a bag, gathered and scattered.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/gradients_embedding_bag.h"

#include "aten/ops/clamp_min.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/ge.h"
#include "aten/ops/index_select.h"
#include "aten/ops/indexing/gradients.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/mul.h"
#include "aten/ops/scatter_add.h"
#include "aten/ops/slice.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/where.h"
#include "aten/ops/zeros.h"
#include "aten/ops/zeros_like.h"

namespace treadle::autograd {

Tensor embedding_bag_grad_weight(const Tensor& grad, int64_t rows, const Tensor& indices,
                                 const Tensor& bag_of, const Tensor& bag_size,
                                 const Tensor& max_indices, bool scale_grad_by_freq, int64_t mode,
                                 bool sparse, const Tensor& per_sample_weights,
                                 int64_t padding_idx) {
  if (mode == 2) {  // each element goes to its row; empty bags (-1) to none
    const Tensor some = aten::ge(max_indices, Scalar(0));
    const Tensor to = aten::clamp_min(max_indices, Scalar(0));
    const Tensor zeros =
        aten::zeros({rows, grad.size(1)}, grad.dtype(), std::nullopt, grad.device());
    if (rows == 0) return zeros;
    return aten::scatter_add(zeros, 0, to, aten::where(some, grad, aten::zeros_like(grad)));
  }
  Tensor share = grad;
  if (mode == 1) {
    const Tensor count = aten::to(aten::clamp_min(bag_size, Scalar(1)), grad.dtype());
    share = aten::div(grad, aten::unsqueeze(count, 1));
  }
  const auto of_rows = [&](const Tensor& each, const Tensor& named) {
    return embedding_backward(each, named, rows, padding_idx, scale_grad_by_freq, sparse);
  };
  if (grad.size(0) == 0) return of_rows(grad, aten::slice(indices, 0, 0, 0));
  Tensor each = aten::index_select(share, 0, bag_of);
  if (per_sample_weights.defined()) each = aten::mul(each, aten::unsqueeze(per_sample_weights, 1));
  return of_rows(each, indices);
}

Tensor embedding_bag_grad_factors(const Tensor& grad, const Tensor& weight, const Tensor& indices,
                                  const Tensor& bag_of, int64_t padding_idx) {
  if (grad.size(0) == 0) {
    return aten::zeros(indices.sizes(), grad.dtype(), std::nullopt, grad.device());
  }
  const int64_t last[] = {-1};
  const Tensor each = aten::sum(
      aten::mul(aten::index_select(grad, 0, bag_of), aten::index_select(weight, 0, indices)),
      IntList(last, 1));
  return padding_idx < 0
             ? each
             : aten::masked_fill(each, aten::eq(indices, Scalar(padding_idx)), Scalar(0));
}

}  // namespace treadle::autograd
