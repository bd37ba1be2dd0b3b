// The public form of embedding_bag.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/embedding_bag.h"
#include "aten/ops/_embedding_bag.h"
#include "aten/ops/to.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

Tensor as_indices(const char* name, const Tensor& t) {
  check<ErrorKind::Runtime>(t.dtype() == ScalarType::Int64 || t.dtype() == ScalarType::Int32,
                            OpName("embedding_bag"), "expected ", name,
                            " of dtype int32 or int64, got ", t.dtype());
  return t.dtype() == ScalarType::Int64 ? t : aten::to(t, ScalarType::Int64);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
    int64_t mode, bool sparse, const Tensor& per_sample_weights, bool include_last_offset,
    std::optional<int64_t> padding_idx) {
  check<ErrorKind::Value>(!(sparse && mode == 2), OpName("embedding_bag"),
                          "expected sparse = False for mode 2 (max), got True");
  check<ErrorKind::Runtime>(!(scale_grad_by_freq && mode == 2), OpName("embedding_bag"),
                            "expected scale_grad_by_freq = False for mode 2 (max), "
                            "got True");
  int64_t padding = -1;
  if (padding_idx) {
    const int64_t rows = weight.dim() > 0 ? weight.size(0) : 0;
    check<ErrorKind::Runtime>(*padding_idx >= -rows && *padding_idx < rows, OpName("embedding_bag"),
                              "expected padding_idx within ", rows, " rows, got ", *padding_idx);
    padding = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
  }
  return aten::_embedding_bag(weight, as_indices("indices", indices),
                              as_indices("offsets", offsets), scale_grad_by_freq, mode, sparse,
                              per_sample_weights, include_last_offset, padding);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
    int64_t mode, bool sparse, const Tensor& per_sample_weights, bool include_last_offset) {
  return embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                       per_sample_weights, include_last_offset, std::nullopt);
}

}  // namespace treadle::composite
