// Checks of products with weights of few bits.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/matmul/few_bit_shapes.h"

namespace treadle::shape {
namespace {

void require_matrices(const char* op, const Tensor& self, const Tensor& mat2) {
  check<ErrorKind::Runtime>(self.dim() == 2 && mat2.dim() == 2, OpName(op),
                            "expected self and mat2 with 2 dimensions, got shapes ", self.sizes(),
                            " and ", mat2.sizes());
}

}  // namespace

TensorSpec weight_int8pack_mm(const char* op, const Tensor& self, const Tensor& mat2,
                              const Tensor& scales) {
  require_matrices(op, self, mat2);
  check<ErrorKind::Runtime>(self.size(1) == mat2.size(1), OpName(op),
                            "expected self (m, k) and mat2 (n, k), got shapes ", self.sizes(),
                            " and ", mat2.sizes());
  check<ErrorKind::Runtime>(scales.dim() == 1 && scales.size(0) == mat2.size(0), OpName(op),
                            "expected scales of shape (", mat2.size(0), ",), got ", scales.sizes());
  return {{self.size(0), mat2.size(0)}, self.dtype(), self.device()};
}

TensorSpec weight_int4pack(const char* op, const Tensor& self) {
  check<ErrorKind::Runtime>(self.dim() == 2 && self.size(0) % 16 == 0 && self.size(1) % 8 == 0,
                            OpName(op),
                            "expected a matrix with rows in multiples of 16 and columns in "
                            "multiples of 8, got shape ",
                            self.sizes());
  return {{self.size(0), self.size(1) / 2}, ScalarType::UInt8, self.device()};
}

TensorSpec weight_int4pack_mm(const char* op, const Tensor& self, const Tensor& mat2, int64_t group,
                              const Tensor& scales_and_zeros) {
  require_matrices(op, self, mat2);
  check<ErrorKind::Value>(group == 32 || group == 64 || group == 128 || group == 256, OpName(op),
                          "expected qGroupSize to be one of 32, 64, 128, 256, got ", group);
  check<ErrorKind::Runtime>(self.size(1) % group == 0, OpName(op),
                            "expected self to have columns in multiples of qGroupSize = ", group,
                            ", got shape ", self.sizes());
  check<ErrorKind::Runtime>(mat2.size(1) == self.size(1) / 2 && mat2.size(0) % 16 == 0, OpName(op),
                            "expected packed weights of shape (n, ", self.size(1) / 2,
                            ") with n in multiples of 16, got ", mat2.sizes());
  const int64_t groups = self.size(1) / group;
  check<ErrorKind::Runtime>(scales_and_zeros.dim() == 3 && scales_and_zeros.size(0) == groups &&
                                scales_and_zeros.size(1) == mat2.size(0) &&
                                scales_and_zeros.size(2) == 2,
                            OpName(op), "expected qScaleAndZeros of shape (", groups, ", ",
                            mat2.size(0), ", 2), got ", scales_and_zeros.sizes());
  return {{self.size(0), mat2.size(0)}, self.dtype(), self.device()};
}

}  // namespace treadle::shape
