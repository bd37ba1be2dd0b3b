// Shape rules of operators that read or write chosen elements.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/shape.h"

#include "aten/ops/indexing/index_geometry.h"

namespace treadle::shape {
namespace {

void check_integer_index(const char* op, const Tensor& index) {
  check<ErrorKind::Runtime>(
      index.dtype() == ScalarType::Int64 || index.dtype() == ScalarType::Int32, OpName(op),
      "expected index of dtype int64 or int32, got ", index.dtype());
}

void check_flat_index(const char* op, const Tensor& index) {
  check_integer_index(op, index);
  check<ErrorKind::Index>(index.dim() <= 1, OpName(op),
                          "expected index with at most 1 dimension, got shape ", index.sizes());
}

void check_same_dtype(const char* op, const char* name, const Tensor& self, const Tensor& other) {
  check<ErrorKind::Runtime>(other.dtype() == self.dtype(), OpName(op), "expected ", name,
                            " of self's dtype ", self.dtype(), ", got ", other.dtype());
}

// A 0-dim tensor counts as one of shape (1,).
int64_t size_of(const Tensor& t, int64_t d) { return t.dim() == 0 ? 1 : t.sizes()[d]; }
int64_t rank_of(const Tensor& t) { return t.dim() == 0 ? 1 : t.dim(); }

void check_index_fits(const char* op, const char* name, const Tensor& self, int64_t skip,
                      const Tensor& index) {
  for (int64_t d = 0; d < rank_of(index); ++d) {
    check<ErrorKind::Runtime>(d == skip || size_of(index, d) <= size_of(self, d), OpName(op),
                              "expected index no larger than ", name, " in dimension ", d,
                              ", got shapes ", index.sizes(), " and ", self.sizes());
  }
}

TensorSpec like(const Tensor& t, Device device) {
  return {DimVector(t.sizes()), t.dtype(), device};
}

}  // namespace

// The operators behind index and index_put have names of their own that no caller knows.
TensorSpec index_integer(const char* /*op*/, const Tensor& self, TensorList indices) {
  const char* const op = "index";
  const IndexGeometry g = index_geometry(op, self, indices);
  checked_numel(g.result, self.element_size());
  for (const Tensor& index : indices) common_device(op, {&self, &index}, {"self", "indices"});
  return {g.result, self.dtype(), self.device()};
}

TensorSpec index_put_integer(const char* /*op*/, const Tensor& self, TensorList indices,
                             const Tensor& values) {
  const char* const op = "index_put";
  const TensorSpec target = index_integer(op, self, indices);
  check_same_dtype(op, "values", self, values);
  const auto sizes = broadcast_shape(target.sizes, values.sizes());
  check<ErrorKind::Runtime>(sizes && *sizes == target.sizes, OpName(op),
                            "expected values that broadcast to the indexed shape ", target.sizes,
                            ", got shape ", values.sizes());
  return like(self, common_device(op, {&self, &values}, {"self", "values"}));
}

TensorSpec index_select(const char* op, const Tensor& self, int64_t dim, const Tensor& index) {
  dim = wrap_dim(op, dim, self.dim());
  check_flat_index(op, index);
  TensorSpec spec = like(self, common_device(op, {&self, &index}, {"self", "index"}));
  if (self.dim() > 0)
    spec.sizes[dim] = index.numel();
  else
    check<ErrorKind::Index>(index.numel() == 1, OpName(op),
                            "expected one index for a 0-dim tensor, got ", index.numel());
  checked_numel(spec.sizes, self.element_size());
  return spec;
}

TensorSpec index_write(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                       const Tensor& source) {
  dim = wrap_dim(op, dim, self.dim());
  check_flat_index(op, index);
  check_same_dtype(op, "source", self, source);
  DimVector expected(self.sizes());
  if (self.dim() > 0) expected[dim] = index.numel();
  const bool one =
      self.dim() == 0 && index.numel() == 1 && source.numel() == 1 && source.dim() <= 1;
  const bool scalar_source = self.dim() == 1 && source.dim() == 0 && index.numel() == 1;
  check<ErrorKind::Index>(
      one || scalar_source || (self.dim() > 0 && IntList(expected) == source.sizes()), OpName(op),
      "expected source of shape ", expected, " for index of length ", index.numel(), ", got ",
      source.sizes());
  return like(self, common_device(op, {&self, &index, &source}, {"self", "index", "source"}));
}

TensorSpec index_fill(const char* op, const Tensor& self, int64_t dim, const Tensor& index) {
  wrap_dim(op, dim, self.dim());
  check_flat_index(op, index);
  return like(self, common_device(op, {&self, &index}, {"self", "index"}));
}

TensorSpec gather(const char* op, const Tensor& self, int64_t dim, const Tensor& index) {
  dim = wrap_dim(op, dim, self.dim());
  check_integer_index(op, index);
  TensorSpec spec{DimVector(index.sizes()), self.dtype(),
                  common_device(op, {&self, &index}, {"self", "index"})};
  checked_numel(spec.sizes, self.element_size());
  if (index.numel() == 0) return spec;
  check<ErrorKind::Runtime>(rank_of(index) == rank_of(self), OpName(op),
                            "expected index with as many dimensions as self, got shapes ",
                            index.sizes(), " and ", self.sizes());
  check_index_fits(op, "self", self, dim, index);
  return spec;
}

TensorSpec scatter_value(const char* op, const Tensor& self, int64_t dim, const Tensor& index) {
  dim = wrap_dim(op, dim, self.dim());
  check_integer_index(op, index);
  const TensorSpec spec = like(self, common_device(op, {&self, &index}, {"self", "index"}));
  if (index.numel() == 0) return spec;
  check<ErrorKind::Runtime>(rank_of(index) == rank_of(self), OpName(op),
                            "expected index with as many dimensions as self, got shapes ",
                            index.sizes(), " and ", self.sizes());
  check_index_fits(op, "self", self, dim, index);
  return spec;
}

TensorSpec scatter(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                   const Tensor& src) {
  const TensorSpec spec = scatter_value(op, self, dim, index);
  check_same_dtype(op, "src", self, src);
  common_device(op, {&self, &src}, {"self", "src"});
  if (index.numel() == 0) return spec;
  check<ErrorKind::Runtime>(rank_of(index) == rank_of(src), OpName(op),
                            "expected index with as many dimensions as src, got shapes ",
                            index.sizes(), " and ", src.sizes());
  check_index_fits(op, "src", src, -1, index);
  return spec;
}

TensorSpec embedding(const char* op, const Tensor& weight, const Tensor& indices) {
  check<ErrorKind::Runtime>(weight.dim() == 2, OpName(op),
                            "expected weight with 2 dimensions, got shape ", weight.sizes());
  check_integer_index(op, indices);
  TensorSpec spec{DimVector(indices.sizes()), weight.dtype(),
                  common_device(op, {&weight, &indices}, {"weight", "indices"})};
  spec.sizes.push_back(weight.sizes()[1]);
  checked_numel(spec.sizes, weight.element_size());
  return spec;
}

TensorSpec embedding_dense_backward(const char* op, const Tensor& grad_output,
                                    const Tensor& indices, int64_t num_weights) {
  check_integer_index(op, indices);
  check<ErrorKind::Value>(num_weights >= 0, OpName(op),
                          "expected num_weights >= 0, got num_weights = ", num_weights);
  check<ErrorKind::Runtime>(
      grad_output.dim() == indices.dim() + 1 &&
          grad_output.sizes().slice(0, static_cast<size_t>(indices.dim())) == indices.sizes(),
      OpName(op), "expected grad_output of indices' shape and one more dimension, got shapes ",
      grad_output.sizes(), " and ", indices.sizes());
  TensorSpec spec{{num_weights, grad_output.sizes().back()},
                  grad_output.dtype(),
                  common_device(op, {&grad_output, &indices}, {"grad_output", "indices"})};
  checked_numel(spec.sizes, grad_output.element_size());
  return spec;
}

TensorSpec flip(const char* op, const Tensor& self, IntList dims) {
  wrap_dims(op, OptionalIntList(dims), self.dim(), false);
  return like(self, self.device());
}

}  // namespace treadle::shape
