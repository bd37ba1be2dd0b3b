// Shape rules of outputs that have the shape of an argument, or of each of several.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/shape_same_as.h"

namespace treadle::shape {

TensorSpec same_as(const char*, const Tensor& self) {
  return {self.sizes(), self.dtype(), self.device()};
}

TensorSpec same_as_each(const char* op, const Tensor& a, const Tensor& b) {
  check<ErrorKind::Runtime>(b.sizes() == a.sizes(), OpName(op),
                            "expected tensors of one shape, got ", a.sizes(), " and ", b.sizes());
  check<ErrorKind::Runtime>(b.dtype() == a.dtype(), OpName(op),
                            "expected tensors of one dtype, got ", a.dtype(), " and ", b.dtype());
  check<ErrorKind::Runtime>(b.device() == a.device(), OpName(op),
                            "expected tensors on one device, got ", a.device(), " and ",
                            b.device());
  return same_as(op, a);
}

TensorSpec same_as_each(const char* op, const Tensor& a, const Tensor& b, const Tensor& c) {
  same_as_each(op, a, b);
  return same_as_each(op, a, c);
}

}  // namespace treadle::shape
