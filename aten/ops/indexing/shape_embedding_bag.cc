// Checks that a table, indices and bags fit together.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/shape_embedding_bag.h"

namespace treadle::shape {

std::array<TensorSpec, 4> embedding_bag(const char* op, const Tensor& weight, const Tensor& indices,
                                        const Tensor& offsets, int64_t mode,
                                        const Tensor& per_sample_weights,
                                        bool include_last_offset) {
  check<ErrorKind::Runtime>(weight.dim() == 2, OpName(op),
                            "expected weight of 2 dimensions, got shape ", weight.sizes());
  for (const Tensor* t : {&indices, &offsets}) {
    check<ErrorKind::Runtime>(t->dim() == 1 && t->dtype() == ScalarType::Int64, OpName(op),
                              "expected indices and offsets of 1 dimension and dtype int64, got ",
                              *t);
  }
  check<ErrorKind::Value>(mode >= 0 && mode <= 2, OpName(op),
                          "expected mode 0 (sum), 1 (mean) or 2 (max), got ", mode);
  check<ErrorKind::Runtime>(!include_last_offset || offsets.numel() >= 1, OpName(op),
                            "expected offsets with at least 1 element for include_last_offset = "
                            "True, got 0");
  if (per_sample_weights.defined()) {
    check<ErrorKind::Runtime>(mode == 0, OpName(op),
                              "expected mode 0 (sum) with per_sample_weights, got ", mode);
    check<ErrorKind::Runtime>(per_sample_weights.sizes() == indices.sizes() &&
                                  per_sample_weights.dtype() == weight.dtype(),
                              OpName(op), "expected per_sample_weights of shape ", indices.sizes(),
                              " and dtype ", weight.dtype(), ", got ", per_sample_weights);
  }
  const int64_t bags = offsets.numel() - (include_last_offset ? 1 : 0);
  const auto integers = [&](DimVector sizes) {
    return TensorSpec{sizes, ScalarType::Int64, weight.device()};
  };
  return {TensorSpec{{bags, weight.size(1)}, weight.dtype(), weight.device()},
          integers({indices.numel()}), integers({bags}),
          integers({mode == 2 ? bags : 0, weight.size(1)})};
}

}  // namespace treadle::shape
