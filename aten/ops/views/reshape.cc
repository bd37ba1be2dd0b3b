// Views composed of other views: aliases, several steps in one, and shapes given by another tensor.
//
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <vector>

#include "aten/engine/strides/view_shapes.h"
#include "aten/ops/_as_strided.h"
#include "aten/ops/_conj.h"
#include "aten/ops/_neg_view.h"
#include "aten/ops/adjoint.h"
#include "aten/ops/alias.h"
#include "aten/ops/as_strided.h"
#include "aten/ops/broadcast.h"
#include "aten/ops/broadcast_tensors.h"
#include "aten/ops/broadcast_to.h"
#include "aten/ops/clone.h"
#include "aten/ops/conj.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/diag.h"
#include "aten/ops/diag_embed.h"
#include "aten/ops/diagonal.h"
#include "aten/ops/diagonal_backward.h"
#include "aten/ops/expand.h"
#include "aten/ops/expand_as.h"
#include "aten/ops/flatten.h"
#include "aten/ops/imag.h"
#include "aten/ops/is_conj.h"
#include "aten/ops/is_neg.h"
#include "aten/ops/moveaxis.h"
#include "aten/ops/movedim.h"
#include "aten/ops/narrow.h"
#include "aten/ops/permute.h"
#include "aten/ops/ravel.h"
#include "aten/ops/real.h"
#include "aten/ops/reshape.h"
#include "aten/ops/reshape_as.h"
#include "aten/ops/resolve_conj.h"
#include "aten/ops/resolve_neg.h"
#include "aten/ops/select.h"
#include "aten/ops/slice.h"
#include "aten/ops/swapaxes.h"
#include "aten/ops/t.h"
#include "aten/ops/transpose.h"
#include "aten/ops/unflatten.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/view.h"
#include "aten/ops/view_as.h"
#include "aten/ops/view_as_real.h"

namespace treadle::composite {

Tensor as_strided(const Tensor& self, IntList size, IntList stride,
                  std::optional<int64_t> storage_offset) {
  int64_t offset = 0;
  const bool ok =
      !storage_offset || (*storage_offset >= 0 &&
                          !__builtin_sub_overflow(*storage_offset, self.storage_offset(), &offset));
  check<ErrorKind::Runtime>(ok, OpName("as_strided"),
                            "expected storage_offset >= 0, got storage_offset = ", storage_offset);
  return aten::_as_strided(self, size, stride, offset);
}

Tensor view_as(const Tensor& self, const Tensor& other) { return aten::view(self, other.sizes()); }

Tensor reshape(const Tensor& self, IntList size) {
  const DimVector sizes = shape::infer_size("reshape", size, self.numel());
  if (shape::view_strides(self.sizes(), self.strides(), sizes))
    return aten::view(self, IntList(sizes));
  return aten::view(aten::clone(self, MemoryFormat::Contiguous), IntList(sizes));
}

Tensor reshape_as(const Tensor& self, const Tensor& other) {
  return aten::reshape(self, other.sizes());
}

Tensor swapaxes(const Tensor& self, int64_t axis0, int64_t axis1) {
  return aten::transpose(self, axis0, axis1);
}
Tensor t(const Tensor& self) {
  return self.dim() < 2 ? aten::alias(self) : aten::transpose(self, 0, 1);
}

Tensor adjoint(const Tensor& self) {
  const Tensor transposed = aten::transpose(self, -2, -1);
  return self.is_complex() ? aten::conj(transposed) : transposed;
}

Tensor movedim(const Tensor& self, IntList source, IntList destination) {
  check<ErrorKind::Runtime>(source.size() == destination.size(), OpName("movedim"),
                            "expected as many destinations as sources, got source = ", source,
                            ", destination = ", destination);
  const int64_t rank = self.dim();
  const DimVector from = wrap_dims("movedim", source, rank, false),
                  to = wrap_dims("movedim", destination, rank, false);
  if (rank == 0) return aten::alias(self);
  DimVector order(static_cast<size_t>(rank), -1);
  for (size_t i = 0; i < from.size(); ++i) order[to[i]] = from[i];
  // The dimensions that are not moved fill the remaining positions, in their order.
  size_t place = 0;
  for (int64_t d = 0; d < rank; ++d) {
    if (std::find(from.begin(), from.end(), d) != from.end()) continue;
    while (order[place] != -1) ++place;
    order[place] = d;
  }
  return aten::permute(self, order);
}

Tensor movedim(const Tensor& self, int64_t source, int64_t destination) {
  return composite::movedim(self, IntList(&source, 1), IntList(&destination, 1));
}
Tensor moveaxis(const Tensor& self, IntList source, IntList destination) {
  return composite::movedim(self, source, destination);
}
Tensor moveaxis(const Tensor& self, int64_t source, int64_t destination) {
  return composite::movedim(self, source, destination);
}

Tensor expand_as(const Tensor& self, const Tensor& other) {
  return aten::expand(self, other.sizes());
}
Tensor broadcast_to(const Tensor& self, IntList size) { return aten::expand(self, size); }

Tensor broadcast(const Tensor& self, IntList shape, IntList dims) {
  const auto rank = static_cast<int64_t>(shape.size());
  check<ErrorKind::Value>(
      rank - static_cast<int64_t>(dims.size()) == self.dim(), OpName("broadcast"),
      "expected as many dims as shape has dimensions more ", "than x, got dims = ", dims,
      " for shape = ", shape, " and x of shape ", self.sizes());
  DimVector repeated = wrap_dims("broadcast", OptionalIntList(dims), rank, false);
  std::sort(repeated.begin(), repeated.end());
  Tensor view = self;
  for (const int64_t d : repeated) view = aten::unsqueeze(view, d);
  check<ErrorKind::Value>(is_expandable_to(view.sizes(), shape), OpName("broadcast"),
                          "expected x of sizes that are 1 or those of shape outside of dims, got "
                          "shape ",
                          self.sizes(), " for shape = ", shape, ", dims = ", dims);
  return aten::expand(view, shape);
}

std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  DimVector sizes;
  for (const Tensor& t : tensors)
    sizes = shape::broadcast_sizes("broadcast_tensors", sizes, t.sizes());
  std::vector<Tensor> result;
  for (const Tensor& t : tensors) result.push_back(aten::expand(t, sizes));
  return result;
}

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  const int64_t first = wrap_dim("flatten", start_dim, self.dim()),
                last = wrap_dim("flatten", end_dim, self.dim());
  check<ErrorKind::Runtime>(first <= last, OpName("flatten"),
                            "expected start_dim <= end_dim, got start_dim = ", start_dim,
                            ", end_dim = ", end_dim);
  if (self.dim() > 0 && first == last) return self;
  DimVector sizes;
  int64_t merged = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d < first || d > last) {
      sizes.push_back(self.sizes()[d]);
      continue;
    }
    merged *= self.sizes()[d];
    if (d == last) sizes.push_back(merged);
  }
  if (self.dim() == 0) sizes.push_back(1);
  return aten::reshape(self, sizes);
}

Tensor ravel(const Tensor& self) {
  const Tensor together = aten::contiguous(self);
  return together.dim() == 1 ? together : aten::view(together, {self.numel()});
}

Tensor unflatten(const Tensor& self, int64_t dim, IntList sizes) {
  check<ErrorKind::Runtime>(self.dim() > 0 && !sizes.empty(), OpName("unflatten"),
                            "expected a dimension and sizes to split it into, got ", self.dim(),
                            " dimensions and sizes = ", sizes);
  const int64_t d = wrap_dim("unflatten", dim, self.dim());
  const DimVector split = shape::infer_size("unflatten", sizes, self.sizes()[d]);
  DimVector all(self.sizes().slice(0, static_cast<size_t>(d)));
  for (int64_t s : split) all.push_back(s);
  for (int64_t i = d + 1; i < self.dim(); ++i) all.push_back(self.sizes()[i]);
  return aten::view(self, IntList(all));
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  check<ErrorKind::Runtime>(self.dim() > 0, OpName("narrow"),
                            "expected at least one dimension, got a 0-dim tensor");
  const int64_t size = self.size(dim);
  check<ErrorKind::Index>(start >= -size && start <= size, OpName("narrow"), "expected start in [",
                          -size, ", ", size, "], got start = ", start);
  const int64_t first = start < 0 ? start + size : start;
  check<ErrorKind::Runtime>(length <= size - first, OpName("narrow"),
                            "expected start + length <= ", size, ", got start = ", start,
                            ", length = ", length);
  return aten::slice(self, dim, first, first + length);
}

Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  check<ErrorKind::Runtime>(self.dim() >= 1, OpName("diag_embed"),
                            "expected at least one dimension, got a 0-dim tensor");
  const int64_t rank = self.dim() + 1;
  const int64_t a = wrap_dim("diag_embed", dim1, rank), b = wrap_dim("diag_embed", dim2, rank);
  check<ErrorKind::Runtime>(a != b, OpName("diag_embed"),
                            "expected two different dimensions, got dim1 = ", dim1,
                            ", dim2 = ", dim2);
  const int64_t length = self.sizes().back();
  int64_t side;
  check<ErrorKind::Runtime>(
      offset != INT64_MIN && !__builtin_add_overflow(length, offset < 0 ? -offset : offset, &side),
      OpName("diag_embed"), "expected an offset whose matrix has a size, got offset = ", offset);
  DimVector sizes;
  int64_t next = 0;
  for (int64_t d = 0; d < rank; ++d)
    sizes.push_back(d == a || d == b ? side : self.sizes()[next++]);
  return aten::diagonal_backward(self, sizes, offset, dim1, dim2);
}

Tensor diag(const Tensor& self, int64_t diagonal) {
  if (self.dim() == 1) return aten::diag_embed(self, diagonal);
  return aten::clone(aten::diagonal(self, diagonal));
}

Tensor real(const Tensor& self) {
  if (!self.is_complex()) return self;
  return aten::select(aten::view_as_real(self.impl()->is_conj() ? aten::_conj(self) : self), -1, 0);
}

Tensor imag(const Tensor& self) {
  check<ErrorKind::Runtime>(self.is_complex(), OpName("imag"), "expected a complex tensor, got ",
                            self.dtype());
  // The memory of a conjugated tensor holds the negative.
  if (self.impl()->is_conj())
    return aten::_neg_view(aten::select(aten::view_as_real(aten::_conj(self)), -1, 1));
  return aten::select(aten::view_as_real(self), -1, 1);
}

Tensor resolve_conj(const Tensor& self) {
  return self.impl()->is_conj() ? aten::clone(self) : self;
}
Tensor resolve_neg(const Tensor& self) { return self.impl()->is_neg() ? aten::clone(self) : self; }
bool is_conj(const Tensor& self) { return self.impl()->is_conj(); }
bool is_neg(const Tensor& self) { return self.impl()->is_neg(); }

}  // namespace treadle::composite
