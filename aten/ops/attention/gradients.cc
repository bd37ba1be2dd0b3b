// Attention's gradient: one kernel, or a composition where it is differentiated again.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/attention/gradients.h"

#include "aten/ops/_attention_backward.h"
#include "aten/ops/_attention_dropout_mask.h"
#include "aten/ops/attention/attention_weights.h"
#include "aten/ops/matmul.h"
#include "aten/ops/mul.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/transpose.h"

namespace treadle::autograd {

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& grad, const Tensor& query,
                                                      const Tensor& key, const Tensor& value,
                                                      const Tensor& mask, const Tensor& output,
                                                      const Tensor& logsumexp, double dropout_p,
                                                      bool is_causal, double scale, int64_t seed) {
  if (!grad_enabled()) {
    return aten::_attention_backward(grad, query, key, value, mask, output, logsumexp, dropout_p,
                                     is_causal, scale, seed);
  }
  const Tensor p = composite::attention_weights(query, key, mask, is_causal, scale);
  Tensor kept = p, d_p = aten::matmul(grad, aten::transpose(value, -2, -1));
  if (dropout_p > 0) {
    const Tensor keep = aten::_attention_dropout_mask(p, dropout_p, seed);
    kept = aten::mul(p, keep);
    d_p = aten::mul(d_p, keep);
  }
  const int64_t last[] = {-1};
  const Tensor mean = aten::sum(aten::mul(p, d_p), IntList(last, 1), true);
  const Tensor d_scores = aten::mul(aten::mul(p, aten::sub(d_p, mean)), Scalar(scale));
  return {aten::matmul(d_scores, key), aten::matmul(aten::transpose(d_scores, -2, -1), query),
          aten::matmul(aten::transpose(kept, -2, -1), grad)};
}

}  // namespace treadle::autograd
