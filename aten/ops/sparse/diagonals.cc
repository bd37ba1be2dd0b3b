// A sparse matrix of its diagonals.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "aten/ops/_sparse_coo_tensor.h"
#include "aten/ops/_spdiags.h"
#include "aten/ops/arange.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"
#include "aten/ops/flatten.h"
#include "aten/ops/ge.h"
#include "aten/ops/index_select.h"
#include "aten/ops/logical_and.h"
#include "aten/ops/lt.h"
#include "aten/ops/nonzero.h"
#include "aten/ops/reshape.h"
#include "aten/ops/sparse/contents.h"
#include "aten/ops/stack.h"
#include "aten/ops/sub.h"
#include "aten/ops/to.h"
#include "aten/ops/to_sparse.h"
#include "aten/ops/unsqueeze.h"

namespace treadle::composite {
namespace {

void require_different(const Tensor& offsets) {
  const Tensor read = aten::contiguous(aten::to(offsets, kCPU, ScalarType::Int64));
  const int64_t* const first = read.data_as<int64_t>();
  std::vector<int64_t> sorted(first, first + read.numel());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  check<ErrorKind::Runtime>(twice == sorted.end(), OpName("spdiags"),
                            "expected different offsets, got ", *twice, " more than once");
}

}  // namespace

Tensor _spdiags(const Tensor& diagonals, const Tensor& offsets, IntList shape,
                std::optional<Layout> layout) {
  const char* const op = "spdiags";
  const Layout wanted = layout.value_or(Layout::SparseCoo);
  const Tensor rows = diagonals.dim() == 1 ? aten::unsqueeze(diagonals, 0) : diagonals;
  const Tensor places = offsets.dim() == 0 ? aten::unsqueeze(offsets, 0) : offsets;
  check<ErrorKind::Runtime>(rows.dim() == 2 && places.dim() == 1 && rows.size(0) == places.size(0),
                            OpName(op),
                            "expected diagonals of shape (d, n) and d offsets, got shapes ",
                            diagonals.sizes(), " and ", offsets.sizes());
  check<ErrorKind::Runtime>(places.dtype() == ScalarType::Int64, OpName(op),
                            "expected offsets of int64, got ", places.dtype());
  check<ErrorKind::Runtime>(shape.size() == 2, OpName(op), "expected a shape of two sizes, got ",
                            shape);
  check<ErrorKind::Runtime>(
      wanted == Layout::SparseCoo || wanted == Layout::SparseCsr || wanted == Layout::SparseCsc,
      OpName(op),
      "expected the layout sparse_coo, sparse_csr or sparse_csc,"
      " got ",
      name_of(wanted));
  if (!places.is_meta()) require_different(places);
  // Entry (d, j) of the diagonals is in row j - offsets[d] and column j, if the matrix has them.
  const Tensor numbers =
      aten::arange(Scalar(rows.size(1)), ScalarType::Int64, std::nullopt, rows.device());
  const Tensor column = aten::expand(numbers, rows.sizes());
  const Tensor row = aten::sub(column, aten::unsqueeze(places, 1));
  const Tensor inside = aten::logical_and(
      aten::ge(row, Scalar(0)),
      aten::logical_and(aten::lt(row, Scalar(shape[0])), aten::lt(column, Scalar(shape[1]))));
  const Tensor kept = aten::flatten(aten::nonzero(aten::flatten(inside)));
  const auto chosen = [&](const Tensor& of) {
    return aten::index_select(aten::flatten(of), 0, kept);
  };
  const Tensor made = aten::_sparse_coo_tensor(aten::stack({chosen(row), chosen(column)}),
                                               chosen(rows), shape, false);
  return aten::to_sparse(made, wanted, std::nullopt, std::nullopt);
}

}  // namespace treadle::composite
