// Shape rules of sorting, selection and search.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/sorting/shape.h"

namespace treadle::shape {
namespace {

DimVector without_dim(const Tensor& self, int64_t dim, bool keepdim) {
  DimVector sizes(self.sizes());
  if (sizes.empty()) return sizes;
  if (keepdim)
    sizes[dim] = 1;
  else
    sizes.erase(dim);
  return sizes;
}

int64_t size_along(const Tensor& self, int64_t dim) { return self.dim() == 0 ? 1 : self.size(dim); }

std::array<TensorSpec, 2> values_and_indices(const Tensor& self, const DimVector& sizes) {
  return {TensorSpec{sizes, self.dtype(), self.device()},
          TensorSpec{sizes, ScalarType::Int64, self.device()}};
}

}  // namespace

TensorSpec along_dim(const char* op, const Tensor& self, int64_t dim) {
  wrap_dim(op, dim, self.dim());
  return values_and_indices(self, DimVector(self.sizes()))[0];
}

std::array<TensorSpec, 2> sort(const char* op, const Tensor& self, int64_t dim) {
  wrap_dim(op, dim, self.dim());
  return values_and_indices(self, DimVector(self.sizes()));
}

std::array<TensorSpec, 2> topk(const char* op, const Tensor& self, int64_t k, int64_t dim) {
  dim = wrap_dim(op, dim, self.dim());
  const int64_t n = size_along(self, dim);
  check<ErrorKind::Runtime>(k >= 0 && k <= n, OpName(op), "expected k in [0, ", n,
                            "], got k = ", k);
  DimVector sizes(self.sizes());
  if (!sizes.empty()) sizes[dim] = k;
  return values_and_indices(self, sizes);
}

std::array<TensorSpec, 2> select_one(const char* op, const Tensor& self, int64_t dim,
                                     bool keepdim) {
  dim = wrap_dim(op, dim, self.dim());
  check<ErrorKind::Index>(size_along(self, dim) > 0, OpName(op),
                          "expected a dimension of size > 0 to reduce, got dim = ", dim,
                          " of shape ", self.sizes());
  return values_and_indices(self, without_dim(self, dim, keepdim));
}

std::array<TensorSpec, 2> kthvalue(const char* op, const Tensor& self, int64_t k, int64_t dim,
                                   bool keepdim) {
  dim = wrap_dim(op, dim, self.dim());
  const int64_t n = size_along(self, dim);
  check<ErrorKind::Runtime>(k >= 1 && k <= n, OpName(op), "expected k in [1, ", n,
                            "], got k = ", k);
  return values_and_indices(self, without_dim(self, dim, keepdim));
}

TensorSpec argreduce(const char* op, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  if (dim) {
    TensorSpec spec = select_one(op, self, *dim, keepdim)[1];
    return spec;
  }
  check<ErrorKind::Index>(self.numel() > 0, OpName(op),
                          "expected a tensor with elements, or a dim, got shape ", self.sizes());
  return {keepdim ? DimVector(static_cast<size_t>(self.dim()), 1) : DimVector(), ScalarType::Int64,
          self.device()};
}

// No caller knows the name of the operator behind searchsorted.
TensorSpec searchsorted(const char* /*op*/, const Tensor& sorted_sequence, const Tensor& self,
                        bool out_int32, bool right, std::optional<std::string_view> side,
                        const Tensor& sorter) {
  const char* const op = "searchsorted";
  const Device device =
      common_device(op, {&sorted_sequence, &self, &sorter}, {"sorted_sequence", "self", "sorter"});
  check<ErrorKind::Runtime>(!side || *side == "left" || *side == "right", OpName(op),
                            "expected side 'left' or 'right', got '", side.value_or(""), "'");
  check<ErrorKind::Runtime>(!(side && *side == "left" && right), OpName(op),
                            "expected right = False with side 'left', got right = True");
  check<ErrorKind::Runtime>(
      sorted_sequence.dim() > 0, OpName(op),
      "expected a sorted sequence with at least 1 dimension, got a 0-dim tensor");
  if (sorted_sequence.dim() > 1) {
    const size_t lead = static_cast<size_t>(sorted_sequence.dim() - 1);
    check<ErrorKind::Runtime>(
        self.dim() == sorted_sequence.dim() &&
            self.sizes().slice(0, lead) == sorted_sequence.sizes().slice(0, lead),
        OpName(op), "expected values whose leading dimensions equal the sequence's, got shapes ",
        self.sizes(), " and ", sorted_sequence.sizes());
  }
  if (sorter.defined()) {
    check<ErrorKind::Runtime>(
        sorter.dtype() == ScalarType::Int64 && sorter.sizes() == sorted_sequence.sizes(),
        OpName(op), "expected sorter of dtype int64 and shape ", sorted_sequence.sizes(), ", got ",
        sorter);
  }
  check<ErrorKind::Runtime>(
      !out_int32 || sorted_sequence.sizes().back() <= INT32_MAX, OpName(op),
      "expected a sequence of at most 2147483647 entries with out_int32, got ",
      sorted_sequence.sizes().back());
  return {DimVector(self.sizes()), out_int32 ? ScalarType::Int32 : ScalarType::Int64, device};
}

}  // namespace treadle::shape
