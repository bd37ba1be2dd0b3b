// Sparse tensors made of parts, their parts, and conversions between layouts.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/layouts.h"
#include "aten/ops/_coo_groups.h"
#include "aten/ops/_csr_dense.h"
#include "aten/ops/_csr_transposed.h"
#include "aten/ops/_indices.h"
#include "aten/ops/_nnz.h"
#include "aten/ops/_sparse_compressed_tensor.h"
#include "aten/ops/_sparse_coo_tensor.h"
#include "aten/ops/_values.h"
#include "aten/ops/any.h"
#include "aten/ops/ccol_indices.h"
#include "aten/ops/coalesce.h"
#include "aten/ops/col_indices.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/crow_indices.h"
#include "aten/ops/dense_dim.h"
#include "aten/ops/detach.h"
#include "aten/ops/flatten.h"
#include "aten/ops/indices.h"
#include "aten/ops/is_coalesced.h"
#include "aten/ops/nonzero.h"
#include "aten/ops/row_indices.h"
#include "aten/ops/sparse/contents.h"
#include "aten/ops/sparse_dim.h"
#include "aten/ops/sparse_mask.h"
#include "aten/ops/t.h"
#include "aten/ops/to.h"
#include "aten/ops/to_dense.h"
#include "aten/ops/to_sparse.h"
#include "aten/ops/to_sparse_bsc.h"
#include "aten/ops/to_sparse_bsr.h"
#include "aten/ops/to_sparse_csc.h"
#include "aten/ops/to_sparse_csr.h"
#include "aten/ops/values.h"
#include "aten/ops/zeros.h"

namespace treadle::composite {
namespace {

using namespace sparse;  // NOLINT

void require_coo(const char* op, const Tensor& t) {
  check<ErrorKind::Runtime>(is_coo(t), OpName(op), "expected a sparse tensor, got a ",
                            name_of(t.layout()), " one of shape ", t.sizes());
}

Tensor part_of(const char* op, const Tensor& t, bool by_rows, size_t part) {
  check<ErrorKind::Runtime>(is_compressed(t.layout()) && is_by_rows(t.layout()) == by_rows,
                            OpName(op), "expected a sparse tensor by ",
                            by_rows ? "rows" : "columns", ", got a ", name_of(t.layout()),
                            " one of shape ", t.sizes());
  return contents_of(t)->parts[part];
}

Coo coo_of_strided(const char* op, const Tensor& self, int64_t sparse_dim) {
  check<ErrorKind::Runtime>(sparse_dim >= (self.dim() == 0 ? 0 : 1) && sparse_dim <= self.dim(),
                            OpName(op), "expected sparse_dim from 1 to ", self.dim(), ", got ",
                            sparse_dim);
  Tensor present = aten::detach(self);
  if (sparse_dim < self.dim()) present = aten::any(aten::flatten(present, sparse_dim), -1);
  const Tensor indices = aten::contiguous(aten::t(aten::nonzero(present)));
  return {indices, picked(self, indices), DimVector(self.sizes()), true};
}

// From rows to columns or back, of one matrix.
bool is_turned(const Tensor& self, Layout layout) {
  const bool both = (self.layout() == Layout::SparseCsr && layout == Layout::SparseCsc) ||
                    (self.layout() == Layout::SparseCsc && layout == Layout::SparseCsr);
  return both && compressed_of("to_sparse", self).batch_dims() == 0;
}
Tensor turned(const char* op, const Tensor& self, Layout layout) {
  const Compressed c = compressed_of(op, self);
  const int64_t others = c.sizes[is_by_rows(c.layout) ? 1 : 0];
  const auto [offsets, indices, values] =
      aten::_csr_transposed(c.values, aten::to(c.offsets, ScalarType::Int64),
                            aten::to(c.indices, ScalarType::Int64), others);
  return tensor_of(Compressed{layout, offsets, indices, values, c.sizes});
}

Tensor converted(const char* op, const Tensor& self, Layout layout, OptionalIntList blocks,
                 std::optional<int64_t> dense_dim) {
  const int64_t dense = dense_dim.value_or(0);
  check<ErrorKind::Runtime>(dense >= 0 && dense + 2 <= self.dim(), OpName(op),
                            "expected a dense_dim that leaves 2 dimensions, got ", dense,
                            " for shape ", self.sizes());
  if (self.layout() == layout && !blocks) return self;
  if (is_turned(self, layout)) return turned(op, self, layout);
  if (!self.is_strided()) return compressed_tensor(op, coo_of(op, self), layout, blocks);
  return compressed_tensor(op, coo_of_strided(op, self, self.dim() - dense), layout, blocks);
}

}  // namespace

Tensor _sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntList size,
                          bool is_coalesced) {
  LayoutContents contents{{indices, values}, {is_coalesced || values.size(0) < 2}};
  check_coo("sparse_coo_tensor", size, contents);
  return layout_tensor(Layout::SparseCoo, size, std::move(contents));
}

Tensor _sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices,
                                 const Tensor& values, IntList size, Layout layout) {
  const char* const op = "sparse_compressed_tensor";
  check<ErrorKind::Runtime>(is_compressed(layout), OpName(op),
                            "expected the layout sparse_csr, sparse_csc, sparse_bsr or sparse_bsc, "
                            "got ",
                            name_of(layout));
  LayoutContents contents{{compressed_indices, plain_indices, values}, {}};
  check_compressed(op, layout, size, contents);
  return layout_tensor(layout, size, std::move(contents));
}

// ---- parts ----

Tensor _indices(const Tensor& self) {
  require_coo("_indices", self);
  return contents_of(self)->parts[0];
}
Tensor _values(const Tensor& self) {
  require_coo("_values", self);
  return aten::detach(contents_of(self)->parts[1]);
}
Tensor indices(const Tensor& self) {
  require_coo("indices", self);
  check<ErrorKind::Runtime>(contents_of(self)->fields[0] != 0, OpName("indices"),
                            "expected a coalesced tensor, got one that is not; call coalesce()");
  return contents_of(self)->parts[0];
}
Tensor values(const Tensor& self) {
  check<ErrorKind::Runtime>(is_sparse(self), OpName("values"), "expected a sparse tensor, got a ",
                            name_of(self.layout()), " one of shape ", self.sizes());
  check<ErrorKind::Runtime>(!is_coo(self) || contents_of(self)->fields[0] != 0, OpName("values"),
                            "expected a coalesced tensor, got one that is not; call coalesce()");
  return values_of(self);
}
Tensor crow_indices(const Tensor& self) { return part_of("crow_indices", self, true, 0); }
Tensor col_indices(const Tensor& self) { return part_of("col_indices", self, true, 1); }
Tensor ccol_indices(const Tensor& self) { return part_of("ccol_indices", self, false, 0); }
Tensor row_indices(const Tensor& self) { return part_of("row_indices", self, false, 1); }

int64_t _nnz(const Tensor& self) {
  check<ErrorKind::Runtime>(is_sparse(self), OpName("_nnz"), "expected a sparse tensor, got a ",
                            name_of(self.layout()), " one of shape ", self.sizes());
  if (is_coo(self)) return values_of(self).size(0);
  return contents_of(self)->parts[1].size(-1);
}
int64_t sparse_dim(const Tensor& self) {
  if (!is_sparse(self)) return 0;
  return is_coo(self) ? contents_of(self)->parts[0].size(0) : 2;
}
int64_t dense_dim(const Tensor& self) {
  if (!is_sparse(self)) return self.dim();
  if (is_coo(self)) return values_of(self).dim() - 1;
  return compressed_of("dense_dim", self).dense_dims();
}
bool is_coalesced(const Tensor& self) {
  require_coo("is_coalesced", self);
  return contents_of(self)->fields[0] != 0;
}

Tensor coalesce(const Tensor& self) {
  require_coo("coalesce", self);
  const Coo coo = coo_of("coalesce", self);
  return coo.is_coalesced ? self : tensor_of(coalesced(coo));
}

// ---- conversions ----

Tensor to_dense(const Tensor& self, std::optional<ScalarType> dtype,
                std::optional<bool> masked_grad) {
  if (self.is_strided()) return dtype ? aten::to(self, *dtype) : self;
  check<ErrorKind::NotImplemented>(is_sparse(self), OpName("to_dense"),
                                   "expected a layout with a kernel of to_dense, got ",
                                   name_of(self.layout()));
  check<ErrorKind::Runtime>(!dtype, OpName("to_dense"),
                            "expected no dtype for a sparse tensor, got ",
                            dtype.value_or(self.dtype()));
  check<ErrorKind::NotImplemented>(masked_grad.value_or(true) || !requires_grad_in_parts(self),
                                   OpName("to_dense"),
                                   "expected masked_grad=True, got False: gradients flow to "
                                   "entries alone");
  if (!is_coo(self)) return dense_of(compressed_of("to_dense", self));
  const Coo coo = coo_of("to_dense", self);
  if (coo.is_coalesced && coo.sparse_dim() == 2) {
    const Matrix m = by_rows_of(coo);
    return aten::_csr_dense(m.values, m.offsets, m.columns, m.width, true);
  }
  const Tensor zeros = aten::zeros(self.sizes(), self.dtype(), std::nullopt, self.device());
  add_at(zeros, coo.indices, coo.values, Scalar(1));
  return zeros;
}

Tensor to_sparse(const Tensor& self, int64_t sparse_dim) {
  if (self.is_strided()) return tensor_of(coo_of_strided("to_sparse", self, sparse_dim));
  const Coo coo = coo_of("to_sparse", self);
  check<ErrorKind::Runtime>(sparse_dim == coo.sparse_dim(), OpName("to_sparse"),
                            "expected sparse_dim = ", coo.sparse_dim(),
                            " of the sparse tensor, got ", sparse_dim);
  return is_coo(self) ? self : tensor_of(coo);
}

Tensor to_sparse(const Tensor& self, std::optional<Layout> layout, OptionalIntList blocksize,
                 std::optional<int64_t> dense_dim) {
  const Layout wanted = layout.value_or(Layout::SparseCoo);
  if (wanted == Layout::Strided) return composite::to_dense(self, std::nullopt, std::nullopt);
  if (is_compressed(wanted)) return converted("to_sparse", self, wanted, blocksize, dense_dim);
  check<ErrorKind::Runtime>(wanted == Layout::SparseCoo, OpName("to_sparse"),
                            "expected a sparse layout, got ", name_of(wanted));
  check<ErrorKind::Runtime>(!blocksize, OpName("to_sparse"),
                            "expected no blocksize for a tensor without blocks, got one");
  if (is_coo(self)) return self;
  if (is_sparse(self)) return tensor_of(coo_of("to_sparse", self));
  return tensor_of(coo_of_strided("to_sparse", self, self.dim() - dense_dim.value_or(0)));
}

Tensor to_sparse_csr(const Tensor& self, std::optional<int64_t> dense_dim) {
  return converted("to_sparse_csr", self, Layout::SparseCsr, std::nullopt, dense_dim);
}
Tensor to_sparse_csc(const Tensor& self, std::optional<int64_t> dense_dim) {
  return converted("to_sparse_csc", self, Layout::SparseCsc, std::nullopt, dense_dim);
}
Tensor to_sparse_bsr(const Tensor& self, IntList blocksize, std::optional<int64_t> dense_dim) {
  return converted("to_sparse_bsr", self, Layout::SparseBsr, blocksize, dense_dim);
}
Tensor to_sparse_bsc(const Tensor& self, IntList blocksize, std::optional<int64_t> dense_dim) {
  return converted("to_sparse_bsc", self, Layout::SparseBsc, blocksize, dense_dim);
}

Tensor sparse_mask(const Tensor& self, const Tensor& mask) {
  check<ErrorKind::NotImplemented>(is_sparse(mask), OpName("sparse_mask"),
                                   "expected a sparse mask, got a ", name_of(mask.layout()),
                                   " one");
  check<ErrorKind::Runtime>(self.sizes() == mask.sizes(), OpName("sparse_mask"),
                            "expected a mask of shape ", self.sizes(), ", got ", mask.sizes());
  if (self.impl() == mask.impl()) return self;
  Coo coo = coo_of("sparse_mask", mask);
  coo.values = picked(aten::to_dense(self), coo.indices);
  return is_coo(mask) ? tensor_of(coo) : in_layout_of("sparse_mask", mask, coo);
}

}  // namespace treadle::composite
