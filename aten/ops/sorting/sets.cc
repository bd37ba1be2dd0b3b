// Membership tests and the distinct slices of a tensor: isin, unique_dim, unique_consecutive.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/promotion.h"
#include "aten/ops/_unique_rows.h"
#include "aten/ops/_unique_runs.h"
#include "aten/ops/clamp.h"
#include "aten/ops/eq.h"
#include "aten/ops/index_select.h"
#include "aten/ops/isin.h"
#include "aten/ops/logical_and.h"
#include "aten/ops/logical_not.h"
#include "aten/ops/movedim.h"
#include "aten/ops/ne.h"
#include "aten/ops/new_full.h"
#include "aten/ops/ones_like.h"
#include "aten/ops/reshape.h"
#include "aten/ops/scalar_tensor.h"
#include "aten/ops/searchsorted.h"
#include "aten/ops/sort.h"
#include "aten/ops/take.h"
#include "aten/ops/to.h"
#include "aten/ops/unique_consecutive.h"
#include "aten/ops/unique_dim.h"
#include "aten/ops/unique_dim_consecutive.h"
#include "aten/ops/zeros_like.h"

namespace treadle::composite {
namespace {

using Unique = std::tuple<Tensor, Tensor, Tensor>;

Unique unique_slices(const char* op, const Tensor& self, int64_t dim, bool sorted,
                     bool return_inverse, bool return_counts) {
  const int64_t d = wrap_dim(op, dim, self.dim());
  check<ErrorKind::Runtime>(self.dim() > 0, OpName(op),
                            "expected a tensor with at least 1 dimension, got a 0-dim one");
  const int64_t slices = self.size(d);
  int64_t width = 1;
  for (int64_t i = 0; i < self.dim(); ++i) width *= i == d ? 1 : self.size(i);
  check<ErrorKind::Runtime>(width > 0, OpName(op), "expected slices with elements, got shape ",
                            self.sizes(), " along dim = ", d);
  const Tensor rows = aten::reshape(aten::movedim(self, d, 0), {slices, width});
  auto [first, inverse, counts] = aten::_unique_rows(rows, sorted, return_inverse, return_counts);
  return {aten::index_select(self, d, first), inverse, counts};
}

// `elements` and `test_elements` compared in the dtype `common`.
Tensor membership(const Tensor& elements, const Tensor& test_elements, ScalarType common,
                  bool invert) {
  check<ErrorKind::NotImplemented>(!is_complex(common), OpName("isin"),
                                   "expected real dtypes, got ", common);
  check<ErrorKind::Runtime>(elements.device() == test_elements.device(), OpName("isin"),
                            "expected both tensors on one device, got ", elements.device(), " and ",
                            test_elements.device());
  if (test_elements.numel() == 0)
    return invert ? aten::ones_like(elements, ScalarType::Bool)
                  : aten::zeros_like(elements, ScalarType::Bool);
  const ScalarType type = common == ScalarType::Bool ? ScalarType::UInt8 : common;
  const Tensor wanted = aten::to(elements, type);
  const Tensor sorted = std::get<0>(aten::sort(aten::reshape(aten::to(test_elements, type), {-1})));
  const Tensor place = aten::clamp(aten::searchsorted(sorted, wanted), std::nullopt,
                                   Scalar(test_elements.numel() - 1));
  const Tensor found = aten::take(sorted, place);
  return invert ? aten::ne(found, wanted) : aten::eq(found, wanted);
}

}  // namespace

Unique unique_dim(const Tensor& self, int64_t dim, bool sorted, bool return_inverse,
                  bool return_counts) {
  (void)sorted;  // the order costs nothing more
  return unique_slices("unique_dim", self, dim, true, return_inverse, return_counts);
}

Unique unique_dim_consecutive(const Tensor& self, int64_t dim, bool return_inverse,
                              bool return_counts) {
  return unique_slices("unique_dim_consecutive", self, dim, false, return_inverse, return_counts);
}

Unique unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts,
                          std::optional<int64_t> dim) {
  if (dim)
    return unique_slices("unique_consecutive", self, *dim, false, return_inverse, return_counts);
  return aten::_unique_runs(self, return_inverse, return_counts);
}

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool /*assume_unique*/,
            bool invert) {
  Promotion promotion;
  promotion.add(elements);
  promotion.add(test_elements);
  return membership(elements, test_elements, promotion.result(), invert);
}

Tensor isin_number(const Tensor& elements, const Scalar& test_element, bool /*assume_unique*/,
                   bool invert) {
  return invert ? aten::ne(elements, test_element) : aten::eq(elements, test_element);
}

Tensor number_isin(const Scalar& element, const Tensor& test_elements, bool /*assume_unique*/,
                   bool invert) {
  Promotion promotion;
  promotion.add(element);
  promotion.add(test_elements);
  const ScalarType common = promotion.result();
  return membership(aten::scalar_tensor(element, common, std::nullopt, test_elements.device()),
                    test_elements, common, invert);
}

}  // namespace treadle::composite
