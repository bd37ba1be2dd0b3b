// Advanced indexing: the destination of each dimension, and the sizes of the result.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/index_geometry.h"

namespace treadle::shape {

IndexGeometry index_geometry(const char* op, const Tensor& self, TensorList indices) {
  check<ErrorKind::Index>(static_cast<int64_t>(indices.size()) <= self.dim(), OpName(op),
                          "expected at most ", self.dim(), " indices for a tensor of shape ",
                          self.sizes(), ", got ", indices.size());
  IndexGeometry g;
  bool adjacent = true;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool indexed = d < static_cast<int64_t>(indices.size()) && indices[d].defined();
    if (!indexed) {
      (g.indexed_dims.empty() ? g.before_dims : g.after_dims).push_back(d);
      continue;
    }
    const Tensor& index = indices[d];
    check<ErrorKind::Index>(
        index.dtype() == ScalarType::Int64 || index.dtype() == ScalarType::Int32, OpName(op),
        "expected index tensors of dtype int64, int32, bool or uint8, got ", index.dtype());
    if (g.indexed_dims.empty()) {
      g.index_sizes = index.sizes();
    } else {
      const auto sizes = broadcast_shape(g.index_sizes, index.sizes());
      check<ErrorKind::Index>(sizes.has_value(), OpName(op),
                              "expected index tensors whose shapes broadcast together, got ",
                              g.index_sizes, " and ", index.sizes());
      g.index_sizes = *sizes;
      if (g.indexed_dims.back() != d - 1) adjacent = false;
    }
    g.indexed_dims.push_back(d);
  }
  check<ErrorKind::Index>(!g.indexed_dims.empty(), OpName(op),
                          "expected at least one index tensor, got none");
  if (!adjacent) {
    DimVector rest = g.before_dims;
    for (const int64_t d : g.after_dims) rest.push_back(d);
    g.after_dims = rest;
    g.before_dims.clear();
  }
  for (const int64_t d : g.before_dims) g.result.push_back(self.size(d));
  for (const int64_t size : g.index_sizes) g.result.push_back(size);
  for (const int64_t d : g.after_dims) g.result.push_back(self.size(d));
  return g;
}

}  // namespace treadle::shape
