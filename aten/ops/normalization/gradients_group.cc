// Gradients of group and root-mean-square normalisation: a kernel, or a composition.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/normalization/gradients_group.h"

#include "aten/ops/_group_norm_backward.h"
#include "aten/ops/_rms_norm_backward.h"
#include "aten/ops/mean.h"
#include "aten/ops/reshape.h"
#include "aten/ops/rsqrt.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/zeros_like.h"
#include "autograd/ops_syntax.h"

namespace treadle::autograd {

using namespace ops_syntax;  // NOLINT: infix operators of formulas

std::tuple<Tensor, Tensor, Tensor> group_norm_backward(TensorList grads, const Tensor& input,
                                                       const Tensor& weight, const Tensor& mean,
                                                       const Tensor& rstd, int64_t samples,
                                                       int64_t channels, int64_t plane,
                                                       int64_t groups, double eps,
                                                       std::array<bool, 3> mask) {
  const bool of_statistics = grads[1].defined() || grads[2].defined();
  if (!grad_enabled() && !of_statistics) {
    auto [gx, gw, gb] = aten::_group_norm_backward(grads[0], input, weight, mean, rstd, samples,
                                                   channels, plane, groups);
    return {mask[0] ? gx : Tensor(), mask[1] ? gw : Tensor(), mask[2] ? gb : Tensor()};
  }
  const Tensor grad = grads[0].defined() ? grads[0] : aten::zeros_like(input);
  // (samples, groups, channels of a group, plane); the statistics anew, so that they are recorded.
  const int64_t each = channels / groups;
  const DimVector shape{samples, groups, each, plane}, one{samples, groups, 1, 1};
  const int64_t row[] = {2, 3}, others[] = {0, 3};
  const IntList in_row(row, 2), not_channels(others, 2);
  const Tensor x = aten::reshape(input, shape), g = aten::reshape(grad, shape);
  const Tensor centred = x - aten::mean(x, in_row, true);
  const Tensor r = aten::rsqrt(aten::mean(centred * centred, in_row, true) + Scalar(eps));
  const Tensor xhat = centred * r;
  Tensor gx, gw, gb;
  if (mask[0]) {
    const Tensor h =
        weight.defined() ? g * aten::reshape(weight, DimVector{1, groups, each, 1}) : g;
    gx = r * (h - aten::mean(h, in_row, true) - xhat * aten::mean(h * xhat, in_row, true));
    const Scalar count(each * plane);
    if (grads[1].defined()) gx = gx + aten::reshape(grads[1], one) / count;
    if (grads[2].defined()) gx = gx - aten::reshape(grads[2], one) * r * r * xhat / count;
    gx = aten::to(aten::reshape(gx, input.sizes()), input.dtype());
  }
  if (mask[1]) gw = aten::reshape(aten::sum(g * xhat, not_channels), {channels});
  if (mask[2]) gb = aten::reshape(aten::sum(g, not_channels), {channels});
  return {gx, gw, gb};
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad, const Tensor& input,
                                             IntList normalized_shape, const Tensor& rstd,
                                             const Tensor& weight, double eps,
                                             std::array<bool, 2> mask) {
  if (!grad_enabled()) {
    auto [gx, gw] = aten::_rms_norm_backward(grad, input, normalized_shape, rstd, weight);
    return {mask[0] ? gx : Tensor(), mask[1] ? gw : Tensor()};
  }
  DimVector dims, rows;
  const int64_t kept = input.dim() - static_cast<int64_t>(normalized_shape.size());
  for (int64_t d = 0; d < input.dim(); ++d) (d < kept ? rows : dims).push_back(d);
  const Tensor r = aten::rsqrt(aten::mean(input * input, IntList(dims), true) + Scalar(eps));
  const Tensor xhat = input * r;
  Tensor gx, gw;
  if (mask[0]) {
    const Tensor h = weight.defined() ? grad * weight : grad;
    gx = r * (h - xhat * aten::mean(h * xhat, IntList(dims), true));
  }
  if (mask[1]) gw = rows.empty() ? grad * xhat : aten::sum(grad * xhat, IntList(rows));
  return {gx, gw};
}

}  // namespace treadle::autograd
