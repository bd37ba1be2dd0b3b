// Checks that query, key, value and mask fit together.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/attention/shape.h"

namespace treadle::shape {

std::array<TensorSpec, 2> attention(const char* op, const Tensor& query, const Tensor& key,
                                    const Tensor& value, const Tensor& mask) {
  const int64_t rank = query.dim();
  check<ErrorKind::Runtime>(
      rank >= 2 && key.dim() == rank && value.dim() == rank, OpName(op),
      "expected query, key and value with the same number of dimensions, at least 2, got shapes ",
      query.sizes(), ", ", key.sizes(), " and ", value.sizes());
  check<ErrorKind::Runtime>(key.dtype() == query.dtype() && value.dtype() == query.dtype(),
                            OpName(op), "expected query, key and value of one dtype, got ",
                            query.dtype(), ", ", key.dtype(), " and ", value.dtype());
  const IntList batch = query.sizes().slice(0, static_cast<size_t>(rank - 2));
  const int64_t length = query.size(-2), source = key.size(-2);
  check<ErrorKind::Runtime>(
      key.sizes().slice(0, static_cast<size_t>(rank - 2)) == batch &&
          value.sizes().slice(0, static_cast<size_t>(rank - 2)) == batch &&
          key.size(-1) == query.size(-1) && value.size(-2) == source,
      OpName(op), "expected query (..., L, E), key (..., S, E) and value (..., S, ",
      "Ev), got shapes ", query.sizes(), ", ", key.sizes(), " and ", value.sizes());
  if (mask.defined()) {
    DimVector want(batch);
    want.push_back(length);
    want.push_back(source);
    check<ErrorKind::Runtime>(mask.sizes() == IntList(want), OpName(op), "expected mask of shape ",
                              want, ", got ", mask.sizes());
    check<ErrorKind::Runtime>(mask.dtype() == ScalarType::Bool || mask.dtype() == query.dtype(),
                              OpName(op), "expected mask of dtype bool or ", query.dtype(),
                              ", got ", mask.dtype());
  }
  DimVector out(batch), rows(batch);
  out.push_back(length);
  out.push_back(value.size(-1));
  rows.push_back(length);
  const ScalarType sums = item_size(query.dtype()) == 2 ? ScalarType::Float32 : query.dtype();
  return {TensorSpec{out, query.dtype(), query.device()}, TensorSpec{rows, sums, query.device()}};
}

std::array<TensorSpec, 3> attention_grad(const char* op, const Tensor& grad, const Tensor& query,
                                         const Tensor& key, const Tensor& value, const Tensor& mask,
                                         const Tensor& output, const Tensor& logsumexp) {
  const auto forward = attention(op, query, key, value, mask);
  for (const Tensor* t : {&grad, &output}) {
    check<ErrorKind::Runtime>(
        t->sizes() == IntList(forward[0].sizes) && t->dtype() == query.dtype(), OpName(op),
        "expected grad and output of shape ", forward[0].sizes, " and dtype ", query.dtype(),
        ", got ", *t);
  }
  check<ErrorKind::Runtime>(
      logsumexp.sizes() == IntList(forward[1].sizes) && logsumexp.dtype() == forward[1].dtype,
      OpName(op), "expected logsumexp of shape ", forward[1].sizes, " and dtype ", forward[1].dtype,
      ", got ", logsumexp);
  const auto like = [](const Tensor& t) { return TensorSpec{t.sizes(), t.dtype(), t.device()}; };
  return {like(query), like(key), like(value)};
}

}  // namespace treadle::shape
