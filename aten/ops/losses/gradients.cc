// Gradients of losses whose own formulas are not finite at the ends of their range.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/losses/gradients.h"

#include "aten/ops/binary_cross_entropy.h"
#include "aten/ops/clamp_min.h"
#include "aten/ops/div.h"
#include "aten/ops/log.h"
#include "aten/ops/mul.h"
#include "aten/ops/rsub.h"
#include "aten/ops/sub.h"

namespace treadle::autograd {
namespace {

// The share of the reduced loss's gradient that one element gets: 1 is the mean.
Tensor per_element(const Tensor& grad, const Tensor& self, const Tensor& weight,
                   int64_t reduction) {
  Tensor share = weight.defined() ? aten::mul(grad, weight) : grad;
  return reduction == 1 ? aten::div(share, Scalar(static_cast<double>(self.numel()))) : share;
}

}  // namespace

Tensor binary_cross_entropy_grad_input(const Tensor& grad, const Tensor& self, const Tensor& target,
                                       const Tensor& weight, int64_t reduction) {
  const Tensor spread = aten::mul(self, aten::rsub(self, Scalar(1)));
  const Tensor slope = aten::div(aten::sub(self, target), aten::clamp_min(spread, Scalar(1e-12)));
  return aten::mul(per_element(grad, self, weight, reduction), slope);
}

Tensor binary_cross_entropy_grad_target(const Tensor& grad, const Tensor& self,
                                        const Tensor& weight, int64_t reduction) {
  const auto bounded_log = [](const Tensor& x) {
    return aten::clamp_min(aten::log(x), Scalar(-100));
  };
  const Tensor slope = aten::sub(bounded_log(aten::rsub(self, Scalar(1))), bounded_log(self));
  return aten::mul(per_element(grad, self, weight, reduction), slope);
}

Tensor binary_cross_entropy_grad_weight(const Tensor& grad, const Tensor& self,
                                        const Tensor& target, int64_t reduction) {
  const Tensor loss = aten::binary_cross_entropy(self, target, Tensor(), 0);
  return aten::mul(per_element(grad, self, Tensor(), reduction), loss);
}

}  // namespace treadle::autograd
