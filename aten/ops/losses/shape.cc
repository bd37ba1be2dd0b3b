// Checks that scores, classes and weights fit together.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/losses/shape.h"

namespace treadle::shape {

std::array<TensorSpec, 2> nll_loss(const char* op, const Tensor& self, const Tensor& target,
                                   const Tensor& weight, int64_t reduction) {
  check<ErrorKind::Runtime>(self.dim() == 2, OpName(op),
                            "expected log-probabilities of shape (N, C), got ", self.sizes());
  check<ErrorKind::Runtime>(target.dim() == 1 && target.sizes()[0] == self.sizes()[0], OpName(op),
                            "expected target of shape (", self.sizes()[0], ",), got ",
                            target.sizes());
  check<ErrorKind::Runtime>(target.dtype() == ScalarType::Int64, OpName(op),
                            "expected target of dtype int64 (class indices), got ", target.dtype());
  check<ErrorKind::Runtime>(
      !weight.defined() || (weight.dim() == 1 && weight.sizes()[0] == self.sizes()[1]), OpName(op),
      "expected weight of shape (", self.sizes()[1], ",), got ",
      weight.defined() ? weight.sizes() : IntList());
  check<ErrorKind::Runtime>(!weight.defined() || weight.dtype() == self.dtype(), OpName(op),
                            "expected weight of dtype ", self.dtype(), ", got ",
                            weight.defined() ? weight.dtype() : self.dtype());
  check<ErrorKind::Value>(reduction >= 0 && reduction <= 2, OpName(op),
                          "expected reduction 0 (none), 1 (mean) or 2 (sum), got ", reduction);
  const DimVector sizes = reduction == 0 ? DimVector(target.sizes()) : DimVector();
  return {TensorSpec{sizes, self.dtype(), self.device()},
          TensorSpec{DimVector(), self.dtype(), self.device()}};
}

TensorSpec nll_loss_grad(const char* op, const Tensor& grad, const Tensor& self,
                         const Tensor& target, const Tensor& weight, int64_t reduction,
                         const Tensor& total_weight) {
  const auto forward = nll_loss(op, self, target, weight, reduction);
  check<ErrorKind::Runtime>(
      grad.sizes() == IntList(forward[0].sizes) && grad.dtype() == self.dtype(), OpName(op),
      "expected grad of shape ", forward[0].sizes, " and dtype ", self.dtype(), ", got ", grad);
  check<ErrorKind::Runtime>(total_weight.numel() == 1 && total_weight.dtype() == self.dtype(),
                            OpName(op), "expected total_weight with 1 element of dtype ",
                            self.dtype(), ", got ", total_weight);
  return {self.sizes(), self.dtype(), self.device()};
}

}  // namespace treadle::shape
