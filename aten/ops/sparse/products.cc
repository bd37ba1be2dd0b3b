// Products with sparse matrices, of any sparse layout.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/layouts.h"
#include "aten/ops/_csr_mm.h"
#include "aten/ops/_csr_mv_turned.h"
#include "aten/ops/_csr_sampled_mm.h"
#include "aten/ops/_csr_spgemm.h"
#include "aten/ops/add.h"
#include "aten/ops/addmm.h"
#include "aten/ops/bmm.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"
#include "aten/ops/linear.h"
#include "aten/ops/matmul.h"
#include "aten/ops/mm.h"
#include "aten/ops/movedim.h"
#include "aten/ops/mul.h"
#include "aten/ops/mv.h"
#include "aten/ops/reshape.h"
#include "aten/ops/select.h"
#include "aten/ops/sparse/contents.h"
#include "aten/ops/sparse_sampled_addmm.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/stack.h"
#include "aten/ops/t.h"
#include "aten/ops/to.h"
#include "aten/ops/to_dense.h"
#include "aten/ops/to_sparse.h"
#include "aten/ops/unsqueeze.h"

namespace treadle::sparse {
namespace {

void require_product(const char* op, const Tensor& a, const Tensor& b) {
  for (const Tensor* x : {&a, &b}) {
    if (!is_sparse(*x)) continue;
    const int64_t dense = is_coo(*x) ? values_of(*x).dim() - 1 : compressed_of(op, *x).dense_dims();
    check<ErrorKind::Runtime>(dense == 0, OpName(op),
                              "expected sparse tensors without dense dimensions, got ", dense);
  }
  check<ErrorKind::Runtime>(a.size(-1) == b.size(b.dim() > 1 ? -2 : 0), OpName(op),
                            "expected shapes that multiply, got ", a.sizes(), " and ", b.sizes());
  check<ErrorKind::Runtime>(a.dtype() == b.dtype(), OpName(op), "expected the same dtype, got ",
                            a.dtype(), " and ", b.dtype());
}

Tensor times_dense(const Matrix& m, const Tensor& dense) {
  return aten::_csr_mm(m.values, m.offsets, m.columns, dense);
}

// The product of the transpose of compressed lines, which have no batches, and a vector.
Tensor turned_by_vector(const char* op, const Tensor& lines, const Tensor& vector) {
  const Compressed c = compressed_of(op, lines);
  const int64_t others = lines.size(is_by_rows(c.layout) ? 1 : 0);
  return aten::_csr_mv_turned(c.values, aten::to(c.offsets, ScalarType::Int64),
                              aten::to(c.indices, ScalarType::Int64), vector, others);
}

// The product of two sparse matrices, in the layout of the first; of matrices by columns and of
// blocks by rows.
Tensor times_sparse(const char* op, const Tensor& a, const Tensor& b) {
  const Matrix x = matrix_of(op, a), y = matrix_of(op, b);
  const auto [offsets, columns, values] =
      aten::_csr_spgemm(x.values, x.offsets, x.columns, y.values, y.offsets, y.columns, y.width);
  const Compressed product{Layout::SparseCsr, offsets, columns, values, {x.rows, y.width}};
  return is_coo(a) ? tensor_of(expanded(product)) : tensor_of(product);
}

Tensor bmm(const Tensor& self, const Tensor& mat2) {
  check<ErrorKind::Runtime>(self.dim() == 3 && mat2.dim() == 3, OpName("bmm"),
                            "expected 3 and 3 dimensions, got shapes ", self.sizes(), " and ",
                            mat2.sizes());
  check<ErrorKind::NotImplemented>(is_sparse(self) && mat2.is_strided(), OpName("bmm"),
                                   "expected a sparse tensor and a strided one, in this order");
  require_product("bmm", self, mat2);
  const int64_t b = self.size(0), n = self.size(1), k = self.size(2), m = mat2.size(2);
  check<ErrorKind::Runtime>(mat2.size(0) == b, OpName("bmm"), "expected batches of one size, got ",
                            b, " and ", mat2.size(0));
  // The matrices along a diagonal are one matrix.
  const Coo coo = coo_of("bmm", self);
  const Tensor batch = aten::select(coo.indices, 0, 0);
  const Tensor rows = aten::add(aten::mul(batch, Scalar(n)), aten::select(coo.indices, 0, 1));
  const Tensor columns = aten::add(aten::mul(batch, Scalar(k)), aten::select(coo.indices, 0, 2));
  const Coo flat{aten::stack({rows, columns}), coo.values, {b * n, b * k}, coo.is_coalesced};
  const Tensor product =
      times_dense(matrix_of("bmm", tensor_of(flat)), aten::reshape(mat2, {b * k, m}));
  return aten::reshape(product, {b, n, m});
}

Tensor product(const char* op, const Tensor& a, const Tensor& b) {
  check<ErrorKind::Runtime>(a.dim() > 0 && b.dim() > 0, OpName(op),
                            "expected tensors with dimensions, got a number");
  require_product(op, a, b);
  // A sparse vector is a matrix of one row or of one column.
  if (is_sparse(a) && a.dim() == 1) return aten::squeeze(product(op, aten::unsqueeze(a, 0), b), 0);
  if (is_sparse(b) && b.dim() == 1)
    return aten::squeeze(product(op, a, aten::unsqueeze(b, 1)), a.dim() - 1);
  if ((is_sparse(a) && a.dim() == 3) || (is_sparse(b) && b.dim() == 3)) return sparse::bmm(a, b);
  if (is_sparse(a) && is_sparse(b)) return times_sparse(op, a, b);
  // By columns, a matrix and a vector multiply without a conversion to rows.
  if (a.layout() == Layout::SparseCsc && b.dim() == 1) return turned_by_vector(op, a, b);
  if (b.layout() == Layout::SparseCsr && a.dim() == 1) return turned_by_vector(op, b, a);
  if (is_sparse(a)) {
    const Matrix m = matrix_of(op, a);
    if (b.dim() == 1) return aten::squeeze(times_dense(m, aten::unsqueeze(b, 1)), 1);
    if (b.dim() == 2) return times_dense(m, b);
    const Tensor rows = aten::movedim(b, -2, 0);
    DimVector sizes(rows.sizes());
    const Tensor flat = times_dense(m, aten::reshape(rows, {sizes[0], -1}));
    sizes[0] = m.rows;
    return aten::movedim(aten::reshape(flat, sizes), 0, -2);
  }
  const Matrix turned = matrix_of(op, aten::t(b));
  const Tensor rows = aten::reshape(a, {-1, a.size(-1)});
  DimVector sizes(a.sizes());
  sizes.back() = turned.rows;
  return aten::reshape(aten::t(times_dense(turned, aten::t(rows))), sizes);
}

void require_dims(const char* op, const Tensor& a, int64_t dims_a, const Tensor& b,
                  int64_t dims_b) {
  check<ErrorKind::Runtime>(a.dim() == dims_a && b.dim() == dims_b, OpName(op), "expected ", dims_a,
                            " and ", dims_b, " dimensions, got shapes ", a.sizes(), " and ",
                            b.sizes());
}

Tensor matmul(const Tensor& self, const Tensor& other) { return product("matmul", self, other); }
Tensor mm(const Tensor& self, const Tensor& mat2) {
  require_dims("mm", self, 2, mat2, 2);
  return product("mm", self, mat2);
}
Tensor mv(const Tensor& self, const Tensor& vec) {
  require_dims("mv", self, 2, vec, 1);
  return product("mv", self, vec);
}

Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
             const Scalar& alpha) {
  Tensor sum = sparse::mm(mat1, mat2);
  if (!self.is_strided() && !is_sparse(sum)) sum = aten::to_sparse(sum, sum.dim());
  if (self.is_strided() && is_sparse(sum)) sum = aten::to_dense(sum);
  if (!alpha.equal(1)) sum = aten::mul(sum, alpha);
  if (beta.equal(0)) return sum;
  const Tensor scaled = beta.equal(1) ? self : aten::mul(self, beta);
  return self.is_strided() ? aten::add(aten::expand(scaled, sum.sizes()), sum)
                           : aten::add(scaled, sum);
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const Tensor product = sparse::product("linear", input, aten::t(weight));
  return bias.defined() ? aten::add(product, bias) : product;
}

Tensor sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha) {
  check<ErrorKind::Runtime>(
      self.layout() == Layout::SparseCsr && mat1.is_strided() && mat2.is_strided(),
      OpName("sampled_addmm"), "expected a sparse_csr tensor and two strided matrices, got ",
      name_of(self.layout()), ", ", name_of(mat1.layout()), " and ", name_of(mat2.layout()));
  require_dims("sampled_addmm", mat1, 2, mat2, 2);
  require_product("sampled_addmm", mat1, mat2);
  check<ErrorKind::Runtime>(
      self.dim() == 2 && self.size(0) == mat1.size(0) && self.size(1) == mat2.size(1),
      OpName("sampled_addmm"), "expected a sparse matrix of shape (", mat1.size(0), ", ",
      mat2.size(1), "), got ", self.sizes());
  Compressed c = compressed_of("sampled_addmm", self);
  const Matrix m = matrix_of("sampled_addmm", self);
  Tensor values =
      aten::_csr_sampled_mm(mat1, aten::contiguous(aten::t(mat2)), m.offsets, m.columns);
  if (!alpha.equal(1)) values = aten::mul(values, alpha);
  if (!beta.equal(0)) values = aten::add(values, aten::mul(c.values, beta));
  c.values = values;
  return tensor_of(c);
}

[[maybe_unused]] const Registration registered = [] {
  namespace ops = aten::ops;
  for (const Layout layout : kLayouts) {
    register_layout_kernel<ops::matmul>(layout, &matmul);
    register_layout_kernel<ops::mm>(layout, &mm);
    register_layout_kernel<ops::mv>(layout, &mv);
    register_layout_kernel<ops::bmm>(layout, &bmm);
    register_layout_kernel<ops::addmm>(layout, &addmm);
    register_layout_kernel<ops::linear>(layout, &linear);
  }
  return Registration();
}();

}  // namespace
}  // namespace treadle::sparse

namespace treadle::composite {

Tensor sparse_sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                            const Scalar& beta, const Scalar& alpha) {
  return sparse::sampled_addmm(self, mat1, mat2, beta, alpha);
}

}  // namespace treadle::composite
