// Derivatives of scans, softmax, variances, norms and logsumexp.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/statistics/gradients.h"

#include <limits>

#include "aten/ops/abs.h"
#include "aten/ops/add.h"
#include "aten/ops/any.h"
#include "aten/ops/cat.h"
#include "aten/ops/conj.h"
#include "aten/ops/cumprod.h"
#include "aten/ops/cumsum.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/exp.h"
#include "aten/ops/flip.h"
#include "aten/ops/isinf.h"
#include "aten/ops/item.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/mean.h"
#include "aten/ops/mul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/neg.h"
#include "aten/ops/ones_like.h"
#include "aten/ops/pow.h"
#include "aten/ops/reshape.h"
#include "aten/ops/sign.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/zeros_like.h"

namespace treadle::autograd {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// `t` with the reduced dimensions that keepdim = False removed, as size 1.
Tensor with_reduced(const Tensor& t, const Tensor& self, const DimVector& dims, bool keepdim) {
  if (keepdim || self.dim() == 0) return t;
  DimVector sizes(self.sizes());
  for (const int64_t d : dims) sizes[d] = 1;
  return aten::reshape(t, sizes);
}

Tensor sum_along(const Tensor& t, int64_t dim) {
  return aten::sum(t, OptionalIntList(IntList(&dim, 1)), true);
}

Tensor reverse_cumsum(const Tensor& t, int64_t dim) {
  return t.dim() == 0 ? t : aten::flip(aten::cumsum(aten::flip(t, {dim}), dim), {dim});
}

// t / divisor, 0 where the divisor is.
Tensor divided(const Tensor& t, const Tensor& divisor) {
  const Tensor zero = aten::eq(divisor, 0);
  return aten::masked_fill(aten::div(t, aten::masked_fill(divisor, zero, 1)), zero, 0);
}

// -1, 0 or 1; for complex numbers the direction.
Tensor direction(const Tensor& t) {
  return t.is_complex() ? divided(t, aten::abs(t)) : aten::sign(t);
}

// d/dx_k of sum_i g_i (x_0 ... x_i) = (x_0 ... x_{k-1}) * sum_{i >= k} g_i
// (x_{k+1} ... x_i), element by element.
Tensor cumprod_backward_slow(const Tensor& grad, const Tensor& self, int64_t dim) {
  const int64_t size = self.size(dim);
  const Tensor one = aten::ones_like(aten::narrow(self, dim, 0, 1));
  std::vector<Tensor> parts;
  Tensor before = one;
  for (int64_t k = 0; k < size; ++k) {
    const int64_t behind = size - k - 1;
    const Tensor later =
        aten::cat({one, aten::cumprod(aten::narrow(self, dim, k + 1, behind), dim)}, dim);
    parts.push_back(aten::mul(
        aten::conj(before),
        sum_along(aten::mul(aten::narrow(grad, dim, k, behind + 1), aten::conj(later)), dim)));
    before = aten::mul(before, aten::narrow(self, dim, k, 1));
  }
  return aten::cat(parts, dim);
}

}  // namespace

Tensor cumsum_backward(const Tensor& grad, ScalarType dtype, int64_t dim) {
  return aten::to(reverse_cumsum(grad, dim), dtype);
}

Tensor cumprod_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& result) {
  if (self.dim() == 0) return aten::to(grad, self.dtype());
  if (self.numel() == 0) return aten::zeros_like(self);
  const Tensor factors = aten::to(self, result.dtype());
  const bool has_zero = aten::item(aten::any(aten::eq(self, 0), OptionalIntList())).to<bool>();
  const Tensor gradient = has_zero
                              ? cumprod_backward_slow(grad, factors, dim)
                              : aten::div(reverse_cumsum(aten::mul(grad, aten::conj(result)), dim),
                                          aten::conj(factors));
  return aten::to(gradient, self.dtype());
}

// exp(x_k - r_k) * S_k with the results r and S_k = sum_{i >= k} g_i exp(r_k - r_i), whose factors
// are at most 1. S is composed of pieces of 1, 2, 4, ... elements. The piece of the 2n elements
// from k on is that of the n elements from k on, plus exp(r_k - r_{k + n}) times that from k + n
// on. So it is linear in the gradient, for autograd too.
Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                             int64_t dim) {
  if (grad.numel() == 0 || grad.dim() == 0) return grad;
  const int64_t size = grad.size(dim);
  // Differences of infinities are NaN. An element below an infinite result has no share in it.
  const Tensor infinite = aten::isinf(result);
  Tensor sums = grad;
  for (int64_t n = 1; n < size; n *= 2) {
    const auto first = [&](const Tensor& t) { return aten::narrow(t, dim, 0, size - n); };
    const auto second = [&](const Tensor& t) { return aten::narrow(t, dim, n, size - n); };
    const Tensor factor = aten::conj(aten::exp(
        aten::masked_fill(aten::sub(first(result), second(result)), first(infinite), -kInf)));
    const Tensor joined = aten::add(first(sums), aten::mul(factor, second(sums)));
    sums = aten::cat({joined, aten::narrow(sums, dim, size - n, n)}, dim);
  }
  const Tensor empty = aten::eq(result, -kInf);
  const Tensor shares = aten::exp(aten::masked_fill(aten::sub(self, result), empty, -kInf));
  return aten::mul(aten::conj(shares), sums);
}

Tensor var_backward(const Tensor& grad, const Tensor& self, OptionalIntList dims,
                    const std::optional<Scalar>& correction, bool keepdim) {
  const DimVector reduced = wrap_dims("var", dims, self.dim(), true);
  double count = 1;
  if (self.dim() > 0) {
    for (const int64_t d : reduced) count *= static_cast<double>(self.size(d));
  }
  const double factor = 2 / (count - (correction ? correction->to<double>() : 1.0));
  const Tensor distance = self.dim() == 0
                              ? aten::sub(self, self)
                              : aten::sub(self, aten::mean(self, OptionalIntList(reduced), true));
  return aten::mul(aten::mul(with_reduced(grad, self, reduced, keepdim), factor), distance);
}

Tensor std_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                    OptionalIntList dims, const std::optional<Scalar>& correction, bool keepdim) {
  return var_backward(divided(grad, aten::mul(result, 2)), self, dims, correction, keepdim);
}

Tensor logsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                          IntList dims, bool keepdim) {
  const DimVector reduced = wrap_dims("logsumexp", OptionalIntList(dims), self.dim(), true);
  const Tensor total = with_reduced(result, self, reduced, keepdim);
  // If all elements are -inf, the difference would be NaN. Their share is 0.
  const Tensor finite = aten::masked_fill(total, aten::eq(total, -kInf), 0);
  const Tensor share = aten::exp(aten::sub(self, finite));
  return aten::mul(with_reduced(grad, self, reduced, keepdim), aten::conj(share));
}

Tensor vector_norm_backward(const Tensor& grad, const Tensor& self, const Scalar& ord,
                            OptionalIntList dims, bool keepdim, const Tensor& result) {
  const double p = ord.to<double>();
  if (p == 0) return aten::zeros_like(self);
  const DimVector reduced = wrap_dims("linalg_vector_norm", dims, self.dim(), true);
  const Tensor g = with_reduced(grad, self, reduced, keepdim);
  const Tensor norm = with_reduced(result, self, reduced, keepdim);
  const Tensor values =
      self.dtype() == result.dtype() || self.is_complex() ? self : aten::to(self, result.dtype());
  Tensor gradient;
  if (p == 1) {
    gradient = aten::mul(g, direction(values));
  } else if (p == 2) {
    gradient = aten::mul(values, divided(g, norm));
  } else if (p == kInf || p == -kInf) {
    // Shared among the elements that have the extreme magnitude.
    const Tensor extreme = aten::to(aten::eq(aten::abs(values), norm), norm.dtype());
    const Tensor count = aten::sum(extreme, OptionalIntList(reduced), true);
    gradient = aten::mul(direction(values), aten::mul(aten::div(extreme, count), g));
  } else {
    const Tensor magnitude = aten::abs(values);
    const Tensor zero = aten::eq(magnitude, 0);
    const Tensor powers =
        aten::masked_fill(aten::pow(aten::masked_fill(magnitude, zero, 1), p - 1), zero, 0);
    gradient = aten::mul(aten::mul(direction(values), powers), divided(g, aten::pow(norm, p - 1)));
  }
  return aten::to(gradient, self.dtype());
}

Tensor softmax_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& output,
                               int64_t dim) {
  const Tensor inner = aten::sub(grad_output, sum_along(aten::mul(grad_output, output), dim));
  return aten::sub(aten::mul(grad, inner),
                   aten::mul(grad_output, sum_along(aten::mul(grad, output), dim)));
}

Tensor log_softmax_grad_backward(const Tensor& grad, const Tensor& output, int64_t dim) {
  return aten::sub(grad, sum_along(aten::mul(grad, aten::exp(output)), dim));
}

Tensor log_softmax_double_backward(const Tensor& grad, const Tensor& grad_output,
                                   const Tensor& output, int64_t dim) {
  return aten::neg(aten::mul(aten::mul(grad, aten::exp(output)), sum_along(grad_output, dim)));
}

}  // namespace treadle::autograd
