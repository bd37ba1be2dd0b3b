// Shape rules of softmax and log_softmax.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/statistics/shape_softmax.h"

namespace treadle::shape {

TensorSpec softmax(const char* op, const Tensor& self, int64_t dim, bool half_to_float) {
  wrap_dim(op, dim, self.dim());
  check<ErrorKind::Runtime>(!half_to_float, OpName(op),
                            "expected half_to_float = False on this device, got True");
  return {DimVector(self.sizes()), self.dtype(), self.device()};
}

TensorSpec softmax_backward(const char* op, const Tensor& grad_output, const Tensor& output,
                            int64_t dim, ScalarType input_dtype) {
  wrap_dim(op, dim, output.dim());
  check<ErrorKind::Runtime>(
      grad_output.sizes() == output.sizes() && grad_output.dtype() == output.dtype() &&
          output.dtype() == input_dtype,
      OpName(op), "expected grad_output and output of one shape and of dtype ", input_dtype,
      ", got ", grad_output, " and ", output);
  return {DimVector(output.sizes()), input_dtype,
          common_device(op, {&grad_output, &output}, {"grad_output", "output"})};
}

}  // namespace treadle::shape
