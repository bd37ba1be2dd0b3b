// The product of a sparse and a strided matrix whose terms are averaged or compared instead of
// added.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_sparse_mm.h"
#include "aten/ops/clamp_min.h"
#include "aten/ops/diff.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/index_select.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/mm.h"
#include "aten/ops/mul.h"
#include "aten/ops/segment_reduce.h"
#include "aten/ops/sparse/contents.h"
#include "aten/ops/to.h"
#include "aten/ops/unsqueeze.h"

namespace treadle::composite {

Tensor _sparse_mm(const Tensor& matrix, const Tensor& dense, std::string_view reduce) {
  const char* const op = "mm";
  check<ErrorKind::Runtime>(
      reduce == "sum" || reduce == "mean" || reduce == "amax" || reduce == "amin", OpName(op),
      "expected reduce in ('sum', 'mean', 'amax', 'amin'), got reduce = '", reduce, "'");
  check<ErrorKind::Runtime>(sparse::is_sparse(matrix) && dense.is_strided(), OpName(op),
                            "expected a sparse and a strided matrix for reduce, got layouts ",
                            name_of(matrix.layout()), " and ", name_of(dense.layout()));
  check<ErrorKind::Runtime>(
      matrix.dim() == 2 && dense.dim() == 2 && matrix.size(1) == dense.size(0), OpName(op),
      "expected shapes (n, k) and (k, m), got ", matrix.sizes(), " and ", dense.sizes());
  check<ErrorKind::Runtime>(matrix.dtype() == dense.dtype(), OpName(op),
                            "expected the same dtype, got ", matrix.dtype(), " and ",
                            dense.dtype());
  if (reduce == "sum") return aten::mm(matrix, dense);
  const sparse::Matrix m = sparse::matrix_of(op, matrix);
  const Tensor counts = aten::diff(m.offsets);
  if (reduce == "mean") {
    const Tensor terms = aten::to(aten::clamp_min(counts, Scalar(1)), dense.dtype());
    return aten::div(aten::mm(matrix, dense), aten::unsqueeze(terms, 1));
  }
  const Tensor terms =
      aten::mul(aten::unsqueeze(m.values, 1), aten::index_select(dense, 0, m.columns));
  const Tensor found = aten::segment_reduce(terms, reduce, counts);
  return aten::masked_fill(found, aten::unsqueeze(aten::eq(counts, Scalar(0)), 1), Scalar(0));
}

}  // namespace treadle::composite
