// The rarely used helpers of generated code.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/record.h"

#include "aten/ops/clone.h"
#include "aten/ops/fill_.h"

namespace treadle::autograd {

Tensor kept_for_backward(const Tensor& argument, const Tensor& self) {
  return argument.is_same(self) ? aten::clone(argument) : argument;
}

Tensor or_zeros(const Tensor& grad, const InputMetadata& expected) {
  if (grad.defined() || !expected.differentiable) return grad;
  Tensor zeros = empty_tensor(expected.sizes, expected.dtype, expected.device);
  const NoGrad no_grad;
  aten::fill_(zeros, 0);
  return zeros;
}

}  // namespace treadle::autograd
