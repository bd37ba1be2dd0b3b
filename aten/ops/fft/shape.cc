// Checks of the dimensions of a transform, and the sizes of its result.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/fft/shape.h"

namespace treadle::shape {
namespace {

DimVector transformed(const char* op, const Tensor& self, IntList dim) {
  const DimVector dims = wrap_dims(op, OptionalIntList(dim), self.dim(), false);
  for (const int64_t d : dims) {
    check<ErrorKind::Index>(d < self.dim(), OpName(op),
                            "expected at least 1 dimension, got a 0-dim one");
    check<ErrorKind::Runtime>(self.size(d) > 0, OpName(op),
                              "expected at least 1 element along dimension ", d,
                              ", got self of shape ", self.sizes());
  }
  return dims;
}

}  // namespace

TensorSpec fft_c2c(const char* op, const Tensor& self, IntList dim) {
  transformed(op, self, dim);
  return {self.sizes(), self.dtype(), self.device()};
}

TensorSpec fft_r2c(const char* op, const Tensor& self, IntList dim) {
  check<ErrorKind::Runtime>(!dim.empty(), OpName(op),
                            "expected at least 1 dimension, got dim = ()");
  const DimVector dims = transformed(op, self, dim);
  DimVector sizes(self.sizes());
  sizes[dims.back()] = sizes[dims.back()] / 2 + 1;
  return {sizes, to_complex(self.dtype()), self.device()};
}

TensorSpec fft_c2r(const char* op, const Tensor& self, IntList dim, int64_t last_dim_size) {
  check<ErrorKind::Runtime>(!dim.empty(), OpName(op),
                            "expected at least 1 dimension, got dim = ()");
  const DimVector dims = transformed(op, self, dim);
  check<ErrorKind::Runtime>(last_dim_size > 0 && last_dim_size / 2 + 1 == self.size(dims.back()),
                            OpName(op), "expected ", last_dim_size / 2 + 1,
                            " elements for a result of ", last_dim_size, ", got self of shape ",
                            self.sizes());
  DimVector sizes(self.sizes());
  sizes[dims.back()] = last_dim_size;
  checked_numel(sizes, item_size(to_real(self.dtype())));
  return {sizes, to_real(self.dtype()), self.device()};
}

}  // namespace treadle::shape
