// Other sizes for a sparse tensor, in place.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "aten/engine/layouts.h"
#include "aten/ops/copy_.h"
#include "aten/ops/narrow.h"
#include "aten/ops/new_zeros.h"
#include "aten/ops/reshape.h"
#include "aten/ops/resize_as_sparse_.h"
#include "aten/ops/slice.h"
#include "aten/ops/sparse/contents.h"
#include "aten/ops/sparse_resize_.h"
#include "aten/ops/sparse_resize_and_clear_.h"
#include "aten/ops/to.h"
#include "aten/ops/view.h"

namespace treadle::composite {
namespace {

void require_no_grad(const char* op, const Tensor& self) {
  check<ErrorKind::Runtime>(!values_of(self).requires_grad(), OpName(op),
                            "expected a tensor that does not require grad, got one that does");
}

struct Split {
  IntList sparse, dense;
};

Split checked_split(const char* op, const Tensor& self, IntList size, int64_t sparse_dim,
                    int64_t dense_dim) {
  check<ErrorKind::Runtime>(sparse::is_coo(self), OpName(op),
                            "expected a sparse_coo tensor, got a ", name_of(self.layout()),
                            " one of shape ", self.sizes());
  require_no_grad(op, self);
  check<ErrorKind::Runtime>(sparse_dim >= 0 && dense_dim >= 0 &&
                                static_cast<int64_t>(size.size()) == sparse_dim + dense_dim,
                            OpName(op), "expected a size of ", sparse_dim, " sparse and ",
                            dense_dim, " dense dimensions, got ", size);
  for (const int64_t n : size)
    check<ErrorKind::Runtime>(n >= 0, OpName(op), "expected sizes >= 0, got ", size);
  checked_numel(size);
  const auto dims = static_cast<size_t>(sparse_dim);
  return {size.slice(0, dims), size.slice(dims)};
}

Tensor resized(const char* op, const Tensor& self, IntList size, sparse::Coo coo) {
  coo.sizes = DimVector(size);
  take_layout_tensor(op, self, sparse::tensor_of(coo));
  return self;
}

Tensor cleared(const char* op, const Tensor& self, IntList size, const Split& split) {
  sparse::Coo coo = sparse::coo_of(op, self);
  DimVector sizes(split.dense);
  sizes.insert(0, 0);
  coo.indices = aten::new_zeros(coo.indices, {static_cast<int64_t>(split.sparse.size()), 0});
  coo.values = aten::new_zeros(coo.values, sizes);
  coo.is_coalesced = true;
  return resized(op, self, size, coo);
}

void require_no_shrinking(const char* op, const char* kind, IntList from, IntList to) {
  bool grows = from.size() == to.size();
  for (size_t d = 0; grows && d < to.size(); ++d) grows = to[d] >= from[d];
  check<ErrorKind::Runtime>(grows, OpName(op), "expected ", kind,
                            " dimensions that do not shrink for a tensor with entries, got sizes ",
                            to, " for ", from);
}

// The entries of a template, with the values that the tensor has. Where there are more entries than
// values, the others are 0.
Tensor compressed_as(const char* op, const Tensor& self, const Tensor& other) {
  check<ErrorKind::Runtime>(self.layout() == other.layout(), OpName(op), "expected a ",
                            name_of(other.layout()), " tensor as the template is, got a ",
                            name_of(self.layout()), " one of shape ", self.sizes());
  require_no_grad(op, self);
  const sparse::Compressed from = sparse::compressed_of(op, self);
  const sparse::Compressed like = sparse::compressed_of(op, other);
  const auto copied = [](const Tensor& index, const Tensor& as) {
    return aten::to(index, as, false, /*copy=*/true);
  };
  const Tensor values = aten::new_zeros(from.values, like.values.sizes());
  const int64_t kept = std::min(values.numel(), from.values.numel());
  aten::copy_(aten::narrow(aten::view(values, {-1}), 0, 0, kept),
              aten::narrow(aten::reshape(from.values, {-1}), 0, 0, kept));
  take_layout_tensor(op, self,
                     sparse::tensor_of(sparse::Compressed{
                         like.layout, copied(like.offsets, from.offsets),
                         copied(like.indices, from.indices), values, DimVector(other.sizes())}));
  return self;
}

}  // namespace

Tensor sparse_resize_(const Tensor& self, IntList size, int64_t sparse_dim, int64_t dense_dim) {
  const char* const op = "sparse_resize_";
  const Split split = checked_split(op, self, size, sparse_dim, dense_dim);
  sparse::Coo coo = sparse::coo_of(op, self);
  if (coo.nnz() == 0) return cleared(op, self, size, split);
  require_no_shrinking(op, "sparse", coo.sparse_sizes(), split.sparse);
  const DimVector dense(coo.values.sizes().slice(1));
  require_no_shrinking(op, "dense", dense, split.dense);
  if (split.dense != IntList(dense)) {
    DimVector sizes(split.dense);
    sizes.insert(0, coo.nnz());
    const Tensor wider = aten::new_zeros(coo.values, sizes);
    Tensor part = wider;
    for (size_t d = 0; d < dense.size(); ++d)
      part = aten::slice(part, static_cast<int64_t>(d) + 1, 0, dense[d]);
    aten::copy_(part, coo.values);
    coo.values = wider;
  }
  return resized(op, self, size, coo);
}

Tensor sparse_resize_and_clear_(const Tensor& self, IntList size, int64_t sparse_dim,
                                int64_t dense_dim) {
  const char* const op = "sparse_resize_and_clear_";
  return cleared(op, self, size, checked_split(op, self, size, sparse_dim, dense_dim));
}

Tensor resize_as_sparse_(const Tensor& self, const Tensor& the_template) {
  const char* const op = "resize_as_sparse_";
  check<ErrorKind::Runtime>(sparse::is_sparse(the_template), OpName(op),
                            "expected a sparse template, got a ", name_of(the_template.layout()),
                            " one of shape ", the_template.sizes());
  if (sparse::is_compressed(the_template.layout())) return compressed_as(op, self, the_template);
  const sparse::Coo coo = sparse::coo_of(op, the_template);
  return aten::sparse_resize_(self, coo.sizes, coo.sparse_dim(), coo.values.dim() - 1);
}

}  // namespace treadle::composite
