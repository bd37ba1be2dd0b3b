// Shape rule of var and std.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/statistics/shape.h"

namespace treadle::shape {

TensorSpec variance(const char* op, const Tensor& self, OptionalIntList dims, bool keepdim) {
  const DimVector reduced = wrap_dims(op, dims, self.dim(), true);
  DimVector sizes;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool gone = std::find(reduced.begin(), reduced.end(), d) != reduced.end();
    if (!gone)
      sizes.push_back(self.size(d));
    else if (keepdim)
      sizes.push_back(1);
  }
  return {sizes, to_real(self.dtype()), self.device()};
}

}  // namespace treadle::shape
