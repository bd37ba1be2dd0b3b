// Sums, norms and softmax of sparse tensors over their entries.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "aten/engine/layouts.h"
#include "aten/ops/_coo_groups.h"
#include "aten/ops/_sparse_softmax.h"
#include "aten/ops/_sparse_sum.h"
#include "aten/ops/any.h"
#include "aten/ops/detach.h"
#include "aten/ops/div.h"
#include "aten/ops/exp.h"
#include "aten/ops/index_reduce.h"
#include "aten/ops/index_select.h"
#include "aten/ops/item.h"
#include "aten/ops/linalg_vector_norm.h"
#include "aten/ops/log.h"
#include "aten/ops/log_softmax.h"
#include "aten/ops/new_full.h"
#include "aten/ops/reshape.h"
#include "aten/ops/select.h"
#include "aten/ops/softmax.h"
#include "aten/ops/sparse/contents.h"
#include "aten/ops/stack.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/zeros_like.h"

namespace treadle::sparse {
namespace {

// The sum over dimensions: strided when no sparse dimension is left, else sparse.
Tensor sum_over(const Tensor& self, OptionalIntList dim, bool keepdim,
                std::optional<ScalarType> dtype) {
  const DimVector dims = wrap_dims("sum", dim, self.dim(), true);
  const Coo coo = coo_of("sum", self);
  Tensor values = dtype ? aten::to(coo.values, *dtype) : coo.values;
  const ScalarType kept = values.dtype();
  const int64_t count = coo.sparse_dim();
  if (static_cast<int64_t>(dims.size()) == self.dim() && !keepdim)
    return aten::sum(values, std::optional<ScalarType>(dtype));
  const auto is_summed = [&](int64_t d) {
    return std::find(dims.begin(), dims.end(), d) != dims.end();
  };
  DimVector inner;
  for (const int64_t d : dims)
    if (d >= count) inner.push_back(d - count + 1);
  if (!inner.empty()) values = aten::sum(values, IntList(inner), keepdim, kept);
  std::vector<Tensor> rows;
  DimVector sizes;
  for (int64_t d = 0; d < count; ++d) {
    if (is_summed(d) && !keepdim) continue;
    const Tensor row = aten::select(coo.indices, 0, d);
    rows.push_back(is_summed(d) ? aten::zeros_like(row) : row);
    sizes.push_back(is_summed(d) ? 1 : self.size(d));
  }
  if (rows.empty()) return aten::sum(values, IntList{0}, false, kept);
  for (const int64_t n : values.sizes().slice(1)) sizes.push_back(n);
  return tensor_of(coalesced({aten::stack(rows), values, sizes, false}));
}

ScalarType of_sums(const Tensor& self, std::optional<ScalarType> dtype) {
  if (dtype) return *dtype;
  return is_floating(self.dtype()) || is_complex(self.dtype()) ? self.dtype() : ScalarType::Int64;
}

Tensor sum(const Tensor& self, std::optional<ScalarType> dtype) {
  return sum_over(self, std::nullopt, false, of_sums(self, dtype));
}
Tensor sum_dims(const Tensor& self, OptionalIntList dim, bool keepdim,
                std::optional<ScalarType> dtype) {
  return sum_over(self, dim, keepdim, of_sums(self, dtype));
}

Tensor any(const Tensor& self) { return aten::any(coalesced(coo_of("any", self)).values); }

// Refuses a reduction over some of the dimensions.
void require_all_dims(const char* op, const Tensor& self, OptionalIntList dim, bool keepdim) {
  const DimVector dims = wrap_dims(op, dim, self.dim(), true);
  check<ErrorKind::NotImplemented>(static_cast<int64_t>(dims.size()) == self.dim() && !keepdim,
                                   OpName(op), "expected no dim for a sparse tensor, got one");
}

Tensor any_dims(const Tensor& self, OptionalIntList dim, bool keepdim) {
  require_all_dims("any", self, dim, keepdim);
  return any(self);
}

Tensor vector_norm(const Tensor& self, const Scalar& ord, OptionalIntList dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  require_all_dims("norm", self, dim, keepdim);
  const Tensor values = aten::reshape(coalesced(coo_of("norm", self)).values, {-1});
  return aten::linalg_vector_norm(values, ord, std::nullopt, false, dtype);
}

Tensor item_of(const Tensor& self) { return aten::sum(coo_of("item", self).values); }
Scalar item(const Tensor& self) {
  check<ErrorKind::Runtime>(self.numel() == 1, OpName("item"), "expected one element, got shape ",
                            self.sizes());
  return aten::item(item_of(self));
}

Tensor softmax_over(const Tensor& self, int64_t dim, bool log, std::optional<ScalarType> dtype) {
  const char* const op = log ? "log_softmax" : "softmax";
  Coo coo = coalesced(coo_of(op, self));
  const int64_t d = wrap_dim(op, dim, self.dim());
  const Tensor values = dtype ? aten::to(coo.values, *dtype) : coo.values;
  check<ErrorKind::NotImplemented>(is_floating(values.dtype()), OpName(op),
                                   "expected a floating dtype, got ", values.dtype());
  if (d >= coo.sparse_dim()) {
    const int64_t inner = d - coo.sparse_dim() + 1;
    coo.values = log ? aten::log_softmax(values, inner) : aten::softmax(values, inner);
    return in_layout_of(op, self, coo);
  }
  std::vector<Tensor> rows;
  DimVector sizes;
  for (int64_t k = 0; k < coo.sparse_dim(); ++k) {
    // Entries of one line differ in this dimension only.
    const Tensor row = aten::select(coo.indices, 0, k);
    rows.push_back(k == d ? aten::zeros_like(row) : row);
    sizes.push_back(k == d ? 1 : self.size(k));
  }
  const auto [lines, groups] = aten::_coo_groups(aten::stack(rows), sizes);
  const int64_t count = lines.size(1);
  DimVector of_lines(values.sizes());
  of_lines[0] = count;
  const Tensor least = aten::new_full(values, of_lines, Scalar(-INFINITY));
  const Tensor highest = aten::index_reduce(least, 0, groups, aten::detach(values), "amax");
  const Tensor shifted = aten::sub(values, aten::index_select(highest, 0, groups));
  const Tensor powers = aten::exp(shifted);
  const Tensor total = aten::index_select(grouped(powers, groups, count), 0, groups);
  coo.values = log ? aten::sub(shifted, aten::log(total)) : aten::div(powers, total);
  return in_layout_of(op, self, coo);
}

[[maybe_unused]] const Registration registered = [] {
  namespace ops = aten::ops;
  for (const Layout layout : kLayouts) {
    register_layout_kernel<ops::sum>(layout, &sum);
    register_layout_kernel<ops::sum_dim_IntList>(layout, &sum_dims);
    register_layout_kernel<ops::any>(layout, &any);
    register_layout_kernel<ops::any_dims>(layout, &any_dims);
    register_layout_kernel<ops::linalg_vector_norm>(layout, &vector_norm);
    register_layout_kernel<ops::item>(layout, &item);
  }
  return Registration();
}();

}  // namespace
}  // namespace treadle::sparse

namespace treadle::composite {

Tensor _sparse_sum(const Tensor& self, OptionalIntList dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  check<ErrorKind::Runtime>(sparse::is_sparse(self), OpName("sum"),
                            "expected a sparse tensor, got a strided one of shape ", self.sizes());
  const bool whole = !dim || dim->empty();
  return sparse::sum_over(self, dim, keepdim,
                          whole ? sparse::of_sums(self, dtype) : dtype.value_or(self.dtype()));
}

Tensor _sparse_softmax(const Tensor& self, int64_t dim, bool log, std::optional<ScalarType> dtype) {
  return sparse::softmax_over(self, dim, log, dtype);
}

}  // namespace treadle::composite
