// block_diag and cartesian_prod: one matrix out of several tensors.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/block_diag.h"
#include "aten/ops/cartesian_prod.h"
#include "aten/ops/cat.h"
#include "aten/ops/meshgrid.h"
#include "aten/ops/reshape.h"
#include "aten/ops/stack.h"
#include "aten/ops/to.h"
#include "aten/ops/zeros.h"
#include "core/base/error.h"

namespace treadle::composite {

Tensor block_diag(TensorList tensors) {
  if (tensors.empty()) return aten::zeros({1, 0});
  std::vector<Tensor> blocks;
  ScalarType dtype = tensors[0].dtype();
  int64_t columns = 0;
  for (const Tensor& t : tensors) {
    check<ErrorKind::Runtime>(t.dim() <= 2, OpName("block_diag"),
                              "expected tensors with at most 2 dimensions, got shape ", t.sizes());
    dtype = promote_types(dtype, t.dtype());
    blocks.push_back(t.dim() == 2 ? t : aten::reshape(t, {1, t.numel()}));
    check<ErrorKind::Runtime>(
        !__builtin_add_overflow(columns, blocks.back().size(1), &columns), OpName("block_diag"),
        "expected fewer than 2^63 columns in all, got more, the last shape ", t.sizes());
  }
  std::vector<Tensor> rows;
  int64_t before = 0;
  for (const Tensor& block : blocks) {
    const Tensor b = block.dtype() == dtype ? block : aten::to(block, dtype);
    const auto gap = [&](int64_t width) {
      return aten::zeros({b.size(0), width}, dtype, std::nullopt, b.device());
    };
    rows.push_back(aten::cat({gap(before), b, gap(columns - before - b.size(1))}, 1));
    before += b.size(1);
  }
  return aten::cat(rows, 0);
}

Tensor cartesian_prod(TensorList tensors) {
  check<ErrorKind::Runtime>(!tensors.empty(), OpName("cartesian_prod"),
                            "expected at least 1 tensor, got 0");
  for (const Tensor& t : tensors) {
    check<ErrorKind::Runtime>(t.dim() == 1, OpName("cartesian_prod"),
                              "expected 1-dim tensors, got shape ", t.sizes());
  }
  if (tensors.size() == 1) return tensors[0];
  const std::vector<Tensor> grids = aten::meshgrid(tensors, "ij");
  return aten::reshape(aten::stack(grids, -1),
                       {checked_numel(grids[0].sizes()), static_cast<int64_t>(grids.size())});
}

}  // namespace treadle::composite
