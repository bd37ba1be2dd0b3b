// Shape rules of triangles and of sampling by weights.
//
// SPDX-License-Identifier: Apache-2.0

#include "aten/ops/creation/shape.h"

#include "aten/engine/strides/view_shapes.h"

namespace treadle::shape {

TensorSpec triangle(const char* op, const Tensor& self) {
  check<ErrorKind::Runtime>(self.dim() >= 2, OpName(op), "expected at least 2 dimensions, got ",
                            self.dim());
  return {self.sizes(), self.dtype(), self.device()};
}

TensorSpec multinomial(const char* op, const Tensor& self, int64_t num_samples, bool replacement) {
  const int64_t categories = self.sizes().back();
  check<ErrorKind::Runtime>(categories > 0, OpName(op),
                            "expected at least one weight, got sizes = ", self.sizes());
  check<ErrorKind::Runtime>(categories <= (int64_t{1} << 24), OpName(op),
                            "expected at most 2^24 weights, got ", categories);
  check<ErrorKind::Runtime>(replacement || num_samples <= categories, OpName(op),
                            "expected at most ", categories,
                            " samples without replacement, got num_samples = ", num_samples);
  DimVector sizes(self.sizes());
  sizes.back() = num_samples;
  return {sizes, ScalarType::Int64, self.device()};
}

TensorSpec binomial(const char* op, const Tensor& count, const Tensor& prob) {
  check<ErrorKind::Runtime>(count.dtype() == prob.dtype(), OpName(op),
                            "expected count and prob of one dtype, got ", count.dtype(), " and ",
                            prob.dtype());
  return {broadcast_sizes(op, count.sizes(), prob.sizes()), count.dtype(),
          common_device(op, {&count, &prob}, {"count", "prob"})};
}

}  // namespace treadle::shape
