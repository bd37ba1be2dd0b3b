// Gradients of batch and layer normalisation: a kernel, or a composition.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/normalization/gradients.h"

#include "aten/ops/_batch_norm_backward.h"
#include "aten/ops/_layer_norm_backward.h"
#include "aten/ops/add.h"
#include "aten/ops/mean.h"
#include "aten/ops/mul.h"
#include "aten/ops/reshape.h"
#include "aten/ops/rsqrt.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"

namespace treadle::autograd {
namespace {

// Gradient of xhat * weight + bias where xhat = (x - mean(x)) * rstd(x), over `dims`, from
// differentiable operators only: d x = rstd * (h - mean(h) - xhat * mean(h * xhat)) with h = grad *
// weight. The statistics are computed anew, so that their own dependence on x is recorded. `affine`
// is the shape of weight and bias as they broadcast over x.
std::tuple<Tensor, Tensor, Tensor> normalisation_backward(const Tensor& grad, const Tensor& input,
                                                          const Tensor& weight, IntList dims,
                                                          IntList parameter_dims, IntList affine,
                                                          IntList parameter_shape, double eps,
                                                          std::array<bool, 3> mask) {
  const Tensor centred = aten::sub(input, aten::mean(input, dims, true));
  const Tensor rstd =
      aten::rsqrt(aten::add(aten::mean(aten::mul(centred, centred), dims, true), Scalar(eps)));
  const Tensor xhat = aten::mul(centred, rstd);
  Tensor gx, gw, gb;
  if (mask[0]) {
    const Tensor h = weight.defined() ? aten::mul(grad, aten::reshape(weight, affine)) : grad;
    const Tensor projected = aten::mul(xhat, aten::mean(aten::mul(h, xhat), dims, true));
    gx = aten::mul(rstd, aten::sub(aten::sub(h, aten::mean(h, dims, true)), projected));
  }
  const auto over_parameters = [&](const Tensor& t) {
    return aten::reshape(parameter_dims.empty() ? t : aten::sum(t, parameter_dims),
                         parameter_shape);
  };
  if (mask[1]) gw = over_parameters(aten::mul(grad, xhat));
  if (mask[2]) gb = over_parameters(grad);
  return {gx, gw, gb};
}

std::tuple<Tensor, Tensor, Tensor> masked(std::tuple<Tensor, Tensor, Tensor> all,
                                          std::array<bool, 3> mask) {
  auto& [gx, gw, gb] = all;
  return {mask[0] ? gx : Tensor(), mask[1] ? gw : Tensor(), mask[2] ? gb : Tensor()};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward(const Tensor& grad, const Tensor& input,
                                                       const Tensor& weight, const Tensor& mean,
                                                       const Tensor& var, double eps,
                                                       std::array<bool, 3> mask) {
  if (!grad_enabled())
    return masked(aten::_batch_norm_backward(grad, input, weight, mean, var, eps), mask);
  DimVector dims, affine(static_cast<size_t>(input.dim()), 1);
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (d != 1) dims.push_back(d);
  }
  affine[1] = input.size(1);
  return normalisation_backward(grad, input, weight, dims, dims, affine, {input.size(1)}, eps,
                                mask);
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor& grad, const Tensor& input,
                                                       IntList normalized_shape, const Tensor& mean,
                                                       const Tensor& rstd, const Tensor& weight,
                                                       double eps, std::array<bool, 3> mask) {
  if (!grad_enabled())
    return masked(aten::_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight),
                  mask);
  DimVector dims, rows;
  const int64_t kept = input.dim() - static_cast<int64_t>(normalized_shape.size());
  for (int64_t d = 0; d < input.dim(); ++d) (d < kept ? rows : dims).push_back(d);
  return normalisation_backward(grad, input, weight, dims, rows, normalized_shape, normalized_shape,
                                eps, mask);
}

}  // namespace treadle::autograd
