// Operators that follow from sort, median and searchsorted.
//
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "aten/engine/promotion.h"
#include "aten/ops/_searchsorted.h"
#include "aten/ops/_sort_values.h"
#include "aten/ops/argsort.h"
#include "aten/ops/bucketize.h"
#include "aten/ops/median.h"
#include "aten/ops/movedim.h"
#include "aten/ops/msort.h"
#include "aten/ops/nanmedian.h"
#include "aten/ops/new_full.h"
#include "aten/ops/reshape.h"
#include "aten/ops/scalar_tensor.h"
#include "aten/ops/searchsorted.h"
#include "aten/ops/sort.h"
#include "aten/ops/to.h"

namespace treadle::composite {
namespace {

// A number is compared in the dtype that arithmetic on both would have: 2.5 lies between the
// integers 2 and 3.
Tensor place_of(const Tensor& sequence, const Scalar& number, bool out_int32, bool right,
                std::optional<std::string_view> side, const Tensor& sorter) {
  Promotion promotion;
  promotion.add(sequence);
  promotion.add(number);
  const ScalarType type = promotion.result();
  return aten::_searchsorted(aten::to(sequence, type),
                             aten::scalar_tensor(number, type, std::nullopt, sequence.device()),
                             out_int32, right, side, sorter);
}

void require_boundaries(const Tensor& boundaries) {
  check<ErrorKind::Runtime>(boundaries.dim() == 1, OpName("bucketize"),
                            "expected 1-dim boundaries, got shape ", boundaries.sizes());
}

}  // namespace

std::tuple<Tensor, Tensor> sort_stable(const Tensor& self, std::optional<bool> /*stable*/,
                                       int64_t dim, bool descending) {
  return aten::sort(self, dim, descending);
}

Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(aten::sort(self, dim, descending));
}

Tensor argsort_stable(const Tensor& self, bool /*stable*/, int64_t dim, bool descending) {
  return std::get<1>(aten::sort(self, dim, descending));
}

Tensor median(const Tensor& self) {
  if (self.numel() > 0) return std::get<0>(aten::median(aten::reshape(self, {-1}), 0));
  check<ErrorKind::Runtime>(self.is_floating_point(), OpName("median"),
                            "expected a tensor with elements, got ", self);
  return aten::new_full(self, {}, Scalar(std::numeric_limits<double>::quiet_NaN()));
}

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                    std::optional<std::string_view> side, const Tensor& sorter) {
  if (sorted_sequence.dtype() == self.dtype())
    return aten::_searchsorted(sorted_sequence, self, out_int32, right, side, sorter);
  const ScalarType type = promote_types(sorted_sequence.dtype(), self.dtype());
  return aten::_searchsorted(aten::to(sorted_sequence, type), aten::to(self, type), out_int32,
                             right, side, sorter);
}

Tensor searchsorted_scalar(const Tensor& sorted_sequence, const Scalar& self, bool out_int32,
                           bool right, std::optional<std::string_view> side, const Tensor& sorter) {
  check<ErrorKind::Runtime>(sorted_sequence.dim() == 1, OpName("searchsorted"),
                            "expected a 1-dim sequence for a number, got shape ",
                            sorted_sequence.sizes());
  return place_of(sorted_sequence, self, out_int32, right, side, sorter);
}

Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  require_boundaries(boundaries);
  return aten::searchsorted(boundaries, self, out_int32, right);
}

// Columns that lie side by side are sorted where they lie, and stay so.
Tensor msort(const Tensor& self) {
  if (self.dim() < 2) return aten::_sort_values(self, 0, false);
  const Tensor columns = aten::movedim(self, 0, -1);
  if (!columns.is_contiguous()) return aten::_sort_values(self, 0, false);
  return aten::movedim(aten::_sort_values(columns, -1, false), -1, 0);
}

Tensor nanmedian(const Tensor& self) {
  if (self.numel() > 0) return std::get<0>(aten::nanmedian(aten::reshape(self, {-1}), 0));
  check<ErrorKind::Runtime>(self.is_floating_point(), OpName("nanmedian"),
                            "expected a tensor with elements, got ", self);
  return aten::new_full(self, {}, Scalar(std::numeric_limits<double>::quiet_NaN()));
}

Tensor bucketize_scalar(const Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
  require_boundaries(boundaries);
  return place_of(boundaries, self, out_int32, right, std::nullopt, Tensor());
}

}  // namespace treadle::composite
