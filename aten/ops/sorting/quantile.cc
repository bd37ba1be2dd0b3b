// quantile and nanquantile: elements at given fractions of the order, interpolated between
// neighbours.
//
//   quantile([0, 1, 2, 3], 0.5)  ->  1.5
//
// They are composed of sort, gather and arithmetic, which supply their gradients.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/quantile.h"

#include "aten/engine/named_errors.h"
#include "aten/ops/add.h"
#include "aten/ops/all.h"
#include "aten/ops/ceil.h"
#include "aten/ops/clamp_min.h"
#include "aten/ops/expand.h"
#include "aten/ops/floor.h"
#include "aten/ops/gather.h"
#include "aten/ops/ge.h"
#include "aten/ops/isnan.h"
#include "aten/ops/item.h"
#include "aten/ops/le.h"
#include "aten/ops/lerp.h"
#include "aten/ops/logical_and.h"
#include "aten/ops/logical_not.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/movedim.h"
#include "aten/ops/mul.h"
#include "aten/ops/nanquantile.h"
#include "aten/ops/narrow.h"
#include "aten/ops/new_full.h"
#include "aten/ops/reshape.h"
#include "aten/ops/round.h"
#include "aten/ops/sort.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/unsqueeze.h"

namespace treadle::composite {
namespace {

void check_quantile(const char* op, const Tensor& self, const Tensor& q) {
  check<ErrorKind::Runtime>(self.numel() > 0, OpName(op), "expected self with elements, got shape ",
                            self.sizes());
  check<ErrorKind::Runtime>(q.dim() <= 1, OpName(op),
                            "expected q with at most 1 dimension, got shape ", q.sizes());
  check<ErrorKind::Runtime>(q.dtype() == self.dtype(), OpName(op), "expected q of self's dtype ",
                            self.dtype(), ", got ", q.dtype());
  check<ErrorKind::Runtime>(q.device() == self.device(), OpName(op), "expected q on self's device ",
                            self.device(), ", got ", q.device());
  if (q.is_meta() || q.numel() == 0) return;
  const Tensor inside = aten::logical_and(aten::ge(q, Scalar(0)), aten::le(q, Scalar(1)));
  check<ErrorKind::Runtime>(aten::item(aten::all(inside)).to<bool>(), OpName(op),
                            "expected q in [0, 1], got one that is not");
}

Tensor quantiles(const char* op, const Tensor& self, const Tensor& q, std::optional<int64_t> dim,
                 bool keepdim, std::string_view interpolation, bool ignore_nan) {
  check_quantile(op, self, q);
  const int64_t d = dim ? wrap_dim(op, *dim, self.dim()) : 0;
  // The slices are the rows of a matrix (rows, n).
  Tensor rows = dim && self.dim() > 0 ? aten::movedim(self, d, -1) : aten::reshape(self, {-1});
  DimVector lead(rows.sizes().slice(0, rows.sizes().size() - 1));
  const int64_t n = rows.sizes().back();
  rows = std::get<0>(aten::sort(aten::reshape(rows, {-1, n})));

  // Ranks (rows, m), as fractions of positions.
  const int64_t m = q.numel();
  const Tensor shares = aten::reshape(q, {1, m});
  const Tensor nan = aten::isnan(rows);
  Tensor ranks;
  if (ignore_nan) {
    const Tensor count = aten::sum(aten::logical_not(nan), OptionalIntList(IntList({1})), true);
    ranks = aten::mul(shares, aten::clamp_min(aten::sub(aten::to(count, rows.dtype()), 1), 0));
  } else {
    ranks = aten::expand(aten::mul(shares, Scalar(static_cast<double>(n - 1))), {rows.size(0), m});
    // NaN is last in order, and then the quantile.
    ranks = aten::masked_fill(ranks, aten::narrow(nan, 1, n - 1, 1),
                              Scalar(static_cast<double>(n - 1)));
  }
  if (interpolation == "lower")
    ranks = aten::floor(ranks);
  else if (interpolation == "higher")
    ranks = aten::ceil(ranks);
  else if (interpolation == "nearest")
    ranks = aten::round(ranks);

  const Tensor below = aten::to(ranks, ScalarType::Int64);
  Tensor values = aten::gather(rows, 1, below);
  if (interpolation == "linear" || interpolation == "midpoint") {
    const Tensor upper = aten::gather(rows, 1, aten::to(aten::ceil(ranks), ScalarType::Int64));
    Tensor weight = aten::sub(ranks, aten::to(below, rows.dtype()));
    if (interpolation == "midpoint") weight = aten::mul(aten::ceil(weight), Scalar(0.5));
    values = aten::lerp(values, upper, weight);
  }

  // (rows, m) -> q's dimension first, then those of self.
  if (keepdim && dim && self.dim() > 0)
    lead.insert(static_cast<size_t>(d), 1);
  else if (keepdim)
    lead = DimVector(static_cast<size_t>(self.dim()), 1);
  if (q.dim() == 0) return aten::reshape(values, lead);
  lead.insert(0, m);
  return aten::reshape(aten::movedim(values, -1, 0), lead);
}

Tensor as_tensor(const Tensor& self, double q) { return aten::new_full(self, {}, Scalar(q)); }

}  // namespace

Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  return quantiles("quantile", self, q, dim, keepdim, interpolation, false);
}
Tensor quantile(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  return quantiles("quantile", self, as_tensor(self, q), dim, keepdim, interpolation, false);
}
Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return quantiles("nanquantile", self, q, dim, keepdim, interpolation, true);
}
Tensor nanquantile(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return quantiles("nanquantile", self, as_tensor(self, q), dim, keepdim, interpolation, true);
}

}  // namespace treadle::composite
