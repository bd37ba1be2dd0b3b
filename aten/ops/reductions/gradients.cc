// Sums spread their gradient, means divide it, products multiply it by all the other factors.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/reductions/gradients.h"

#include <algorithm>

#include "aten/ops/cat.h"
#include "aten/ops/conj.h"
#include "aten/ops/cumprod.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/expand.h"
#include "aten/ops/flip.h"
#include "aten/ops/isnan.h"
#include "aten/ops/logical_and.h"
#include "aten/ops/logical_or.h"
#include "aten/ops/mul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/new_ones.h"
#include "aten/ops/reshape.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"

namespace treadle::autograd {
namespace {

// For each element the product of all others along `dim`; exact also where some are zero.
Tensor product_of_others(const Tensor& self, int64_t dim) {
  const int64_t n = self.size(dim);
  DimVector first(self.sizes());
  first[static_cast<size_t>(dim)] = 1;
  const Tensor one = aten::new_ones(self, first);
  // Products of the elements before each element.
  const auto before = [&](const Tensor& t) {
    return aten::cumprod(aten::cat({one, aten::narrow(t, dim, 0, n - 1)}, dim), dim);
  };
  const IntList along(&dim, 1);
  return aten::mul(before(self), aten::flip(before(aten::flip(self, along)), along));
}

}  // namespace

Tensor unsqueeze_multiple(const Tensor& t, OptionalIntList dims, int64_t rank) {
  if (rank == 0) return t;
  const DimVector reduced = wrap_dims("unsqueeze", dims, rank, true);
  DimVector sizes;
  size_t next = 0;
  for (int64_t d = 0; d < rank; ++d) {
    const bool is_reduced = std::find(reduced.begin(), reduced.end(), d) != reduced.end();
    sizes.push_back(is_reduced ? 1 : t.sizes()[next++]);
  }
  return aten::reshape(t, sizes);
}

Tensor restore_reduced_dims(const Tensor& t, OptionalIntList dims, int64_t rank, bool keepdim) {
  return keepdim ? t : unsqueeze_multiple(t, dims, rank);
}

Tensor sum_backward(const Tensor& grad, IntList sizes, OptionalIntList dims, bool keepdim) {
  return aten::expand(restore_reduced_dims(grad, dims, static_cast<int64_t>(sizes.size()), keepdim),
                      sizes);
}

Tensor mean_backward(const Tensor& grad, IntList sizes, OptionalIntList dims, bool keepdim) {
  int64_t count = 1;
  for (const int64_t d : wrap_dims("mean", dims, static_cast<int64_t>(sizes.size()), true)) {
    if (!sizes.empty()) count *= sizes[static_cast<size_t>(d)];
  }
  // Divided before broadcasting: fewer divisions, the same bits.
  return sum_backward(aten::div(grad, Scalar(count)), sizes, dims, keepdim);
}

Tensor prod_backward(const Tensor& grad, const Tensor& self) {
  if (self.dim() == 0) return grad;
  const int64_t all = -1;
  const Tensor others =
      self.numel() > 0 ? product_of_others(aten::reshape(self, IntList(&all, 1)), 0) : self;
  return aten::mul(grad, aten::conj(aten::reshape(others, self.sizes())));
}

Tensor prod_backward(const Tensor& grad, const Tensor& self, int64_t dim, bool keepdim) {
  if (self.dim() == 0) return grad;
  const int64_t d = wrap_dim("prod", dim, self.dim());
  const Tensor others = self.numel() > 0 ? product_of_others(self, d) : self;
  return aten::mul(restore_reduced_dims(grad, IntList(&d, 1), self.dim(), keepdim),
                   aten::conj(others));
}

Tensor extremum_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                         OptionalIntList dims, bool keepdim) {
  const Tensor wide = restore_reduced_dims(result, dims, self.dim(), keepdim);
  // A NaN is the extremum of any set of elements that contains it. Counted in integers, which a
  // half would lose.
  const Tensor chosen = aten::logical_or(aten::eq(self, wide), aten::isnan(self));
  const Tensor share = aten::div(restore_reduced_dims(grad, dims, self.dim(), keepdim),
                                 aten::sum(chosen, dims, true));
  return aten::mul(aten::to(chosen, grad.dtype()), share);
}

Tensor median_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  const Tensor is_median = aten::logical_or(
      aten::eq(self, result), aten::logical_and(aten::isnan(self), aten::isnan(result)));
  // Counted in integers, which a half would lose.
  const Tensor share = aten::div(grad, aten::sum(is_median));
  return aten::mul(aten::to(is_median, grad.dtype()), share);
}

}  // namespace treadle::autograd
