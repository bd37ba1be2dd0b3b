// Shape rule of scans.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/statistics/shape_scan.h"

namespace treadle::shape {

TensorSpec scan(const char* op, const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  wrap_dim(op, dim, self.dim());
  const bool widens = is_integral(self.dtype(), true) && self.dtype() != ScalarType::UInt64;
  const ScalarType own = widens ? ScalarType::Int64 : self.dtype();
  return {DimVector(self.sizes()), dtype.value_or(own), self.device()};
}

TensorSpec scan_same(const char* op, const Tensor& self, int64_t dim) {
  wrap_dim(op, dim, self.dim());
  return {DimVector(self.sizes()), self.dtype(), self.device()};
}

}  // namespace treadle::shape
