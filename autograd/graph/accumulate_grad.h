// AccumulateGrad: the node at a leaf. It adds the gradient to the leaf's .grad. It takes the buffer
// over where nothing else holds it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "autograd/meta.h"

namespace treadle::autograd {

class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor leaf);
  ~AccumulateGrad() override;
  Grads apply(Grads&& grads) override;
  std::string name() const override { return "AccumulateGrad"; }
  const Tensor& leaf() const { return leaf_; }

 protected:
  void destroy() override;
  void visit_held(OwnedWalk& walk) const override;

 private:
  Tensor leaf_;
};

// Adds `grad` to `t.grad`. Two backward passes may do this at the same time, and the program may
// set another gradient meanwhile. If only `owners` hold the first gradient, it becomes `t.grad`
// itself.
void accumulate_into(const Tensor& t, Tensor grad, int64_t owners = 1);

// The accumulator of a leaf. It is made if there is none.
NodePtr grad_accumulator(const Tensor& leaf);

// For a tensor whose memory or geometry was replaced. Later graphs get an accumulator of their own.
// Older graphs add to the same `.grad`.
void forget_accumulator(const Tensor& leaf);

}  // namespace treadle::autograd
