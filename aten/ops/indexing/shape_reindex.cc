// Shape rules of reindex and reindex_reduce.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/shape_reindex.h"

#include "aten/ops/indexing/index_map.h"

namespace treadle::shape {

TensorSpec reindex(const char* op, const Tensor& self, IntList shape, std::string_view indices) {
  checked_numel(shape, self.element_size());
  index_map(op, indices, shape, self.sizes(), "x");
  return {DimVector(shape), self.dtype(), self.device()};
}

TensorSpec reindex_reduce(const char* op, const Tensor& self, std::string_view how, IntList shape,
                          std::string_view indices) {
  checked_numel(shape, self.element_size());
  check<ErrorKind::Runtime>(!self.is_complex() || (how != "max" && how != "min"), OpName(op),
                            "expected a dtype with an order for op = '", how, "', got ",
                            name_of(self.dtype()));
  index_map(op, indices, self.sizes(), shape, "the result");
  const bool logical = how == "logical_and" || how == "logical_or";
  return {DimVector(shape), logical ? ScalarType::Bool : self.dtype(), self.device()};
}

}  // namespace treadle::shape
