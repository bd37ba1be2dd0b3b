// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/quantized/shape.h"

namespace treadle::shape {
namespace {

void check_numbers(const char* op, const Tensor& self, const Tensor& scale,
                   const Tensor& zero_point, int64_t axis) {
  check<ErrorKind::Runtime>(axis >= -1 && axis < self.dim(), OpName(op),
                            "expected an axis from -1 to ", self.dim() - 1, ", got ", axis);
  const int64_t count = axis < 0 ? 1 : self.size(axis);
  check<ErrorKind::Runtime>(
      scale.sizes() == IntList({count}) && zero_point.sizes() == IntList({count}), OpName(op),
      "expected ", count, " scales and zero points, got shapes ", scale.sizes(), " and ",
      zero_point.sizes());
}

}  // namespace

TensorSpec quantize_affine(const char* op, const Tensor& self, const Tensor& scale,
                           const Tensor& zero_point, int64_t axis, ScalarType dtype) {
  check_numbers(op, self, scale, zero_point, axis);
  check<ErrorKind::Runtime>(
      dtype == ScalarType::UInt8 || dtype == ScalarType::Int8 || dtype == ScalarType::Int32,
      OpName(op), "expected the dtype uint8, int8 or int32, got ", dtype);
  return {self.sizes(), dtype};
}

TensorSpec dequantize_affine(const char* op, const Tensor& self, const Tensor& scale,
                             const Tensor& zero_point, int64_t axis) {
  check_numbers(op, self, scale, zero_point, axis);
  return {self.sizes(), ScalarType::Float32};
}

}  // namespace treadle::shape
