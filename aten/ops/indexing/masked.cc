// Indexing under a mask. Where the mask is false, the indices may be out of range.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_unsafe_masked_index.h"
#include "aten/ops/_unsafe_masked_index_put_accumulate.h"
#include "aten/ops/clamp.h"
#include "aten/ops/clone.h"
#include "aten/ops/index.h"
#include "aten/ops/index_put.h"
#include "aten/ops/logical_not.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/new_full.h"

namespace treadle::composite {
namespace {

// The indices, each drawn to the range of its dimension.
std::vector<Tensor> within(const char* op, const Tensor& self, TensorList indices) {
  check<ErrorKind::Index>(static_cast<int64_t>(indices.size()) <= self.dim(), OpName(op),
                          "expected at most ", self.dim(), " indices for shape ", self.sizes(),
                          ", got ", indices.size());
  std::vector<Tensor> result;
  for (size_t d = 0; d < indices.size(); ++d) {
    const int64_t size = self.sizes()[d];
    result.push_back(indices[d].defined() ? aten::clamp(indices[d], Scalar(-size), Scalar(size - 1))
                                          : indices[d]);
  }
  return result;
}

}  // namespace

Tensor _unsafe_masked_index(const Tensor& self, const Tensor& mask, TensorList indices,
                            const Scalar& fill) {
  if (self.numel() == 0) return aten::new_full(self, mask.sizes(), fill);
  const Tensor chosen = aten::index(self, within("_unsafe_masked_index", self, indices));
  return aten::masked_fill(chosen, aten::logical_not(mask), fill);
}

Tensor _unsafe_masked_index_put_accumulate(const Tensor& self, const Tensor& mask,
                                           TensorList indices, const Tensor& values) {
  if (self.numel() == 0) return aten::clone(self);
  const std::vector<Tensor> places = within("_unsafe_masked_index_put_accumulate", self, indices);
  const Tensor added = aten::masked_fill(values, aten::logical_not(mask), Scalar(0));
  return aten::index_put(self, places, added, true);
}

}  // namespace treadle::composite
