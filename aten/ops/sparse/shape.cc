// Shape rules of the kernels for compressed sparse matrices.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/sparse/shape.h"

namespace treadle::shape {
namespace {

void require_pattern(const char* op, const Tensor& crow, const Tensor& col) {
  check<ErrorKind::Runtime>(crow.dim() == 1 && crow.numel() > 0 && col.dim() == 1, OpName(op),
                            "expected offsets and indices of one dimension, got shapes ",
                            crow.sizes(), " and ", col.sizes());
}

void require_matrix(const char* op, const Tensor& values, const Tensor& crow, const Tensor& col) {
  require_pattern(op, crow, col);
  check<ErrorKind::Runtime>(values.sizes() == col.sizes(), OpName(op),
                            "expected as many values as indices, got shapes ", values.sizes(),
                            " and ", col.sizes());
}

void require_2d(const char* op, const Tensor& t) {
  check<ErrorKind::Runtime>(t.dim() == 2, OpName(op), "expected a matrix, got shape ", t.sizes());
}

}  // namespace

TensorSpec csr_coordinates(const char* op, const Tensor& crow, const Tensor& col) {
  require_pattern(op, crow, col);
  return {{2, col.numel()}, ScalarType::Int64};
}

TensorSpec csr_dense(const char* op, const Tensor& values, const Tensor& crow, const Tensor& col,
                     int64_t columns, bool by_rows) {
  require_pattern(op, crow, col);
  check<ErrorKind::Runtime>(values.dim() > 0 && values.size(0) == col.numel(), OpName(op),
                            "expected as many values as indices, got shapes ", values.sizes(),
                            " and ", col.sizes());
  DimVector sizes(values.sizes());
  const int64_t rows = crow.numel() - 1;
  sizes[0] = by_rows ? columns : rows;
  sizes.insert(0, by_rows ? rows : columns);
  return {sizes, values.dtype()};
}

TensorSpec csr_mm(const char* op, const Tensor& values, const Tensor& crow, const Tensor& col,
                  const Tensor& dense) {
  require_matrix(op, values, crow, col);
  require_2d(op, dense);
  return {{crow.numel() - 1, dense.size(1)}, values.dtype()};
}

TensorSpec csr_mv_turned(const char* op, const Tensor& values, const Tensor& crow,
                         const Tensor& col, const Tensor& vector, int64_t columns) {
  require_matrix(op, values, crow, col);
  check<ErrorKind::Runtime>(vector.dim() == 1 && vector.size(0) == crow.numel() - 1, OpName(op),
                            "expected a vector of ", crow.numel() - 1, " elements, got shape ",
                            vector.sizes());
  return {{columns}, values.dtype()};
}

TensorSpec csr_sampled_mm(const char* op, const Tensor& a, const Tensor& b, const Tensor& crow,
                          const Tensor& col) {
  require_pattern(op, crow, col);
  require_2d(op, a);
  require_2d(op, b);
  check<ErrorKind::Runtime>(a.size(1) == b.size(1) && a.size(0) == crow.numel() - 1, OpName(op),
                            "expected matrices of as many columns, the first of ", crow.numel() - 1,
                            " rows, got shapes ", a.sizes(), " and ", b.sizes());
  return {{col.numel()}, a.dtype()};
}

TensorSpec csr_row_dots(const char* op, const Tensor& values1, const Tensor& crow1,
                        const Tensor& col1, const Tensor& values2, const Tensor& crow2,
                        const Tensor& col2, const Tensor& crow, const Tensor& col) {
  require_matrix(op, values1, crow1, col1);
  require_matrix(op, values2, crow2, col2);
  require_pattern(op, crow, col);
  return {{col.numel()}, values1.dtype()};
}

TensorSpec csr_triangular_solve(const char* op, const Tensor& values, const Tensor& crow,
                                const Tensor& col, const Tensor& other) {
  require_matrix(op, values, crow, col);
  require_2d(op, other);
  check<ErrorKind::Runtime>(other.size(0) == crow.numel() - 1, OpName(op), "expected ",
                            crow.numel() - 1, " rows of right sides, got shape ", other.sizes());
  return {DimVector(other.sizes()), values.dtype()};
}

}  // namespace treadle::shape
