// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/sorting/gradients.h"

#include "aten/ops/_unique_rows.h"
#include "aten/ops/put.h"
#include "aten/ops/reshape.h"
#include "aten/ops/zeros_like.h"

namespace treadle::autograd {

Tensor unique_runs_backward(const Tensor& grad, const Tensor& self) {
  const Tensor column = aten::reshape(self, {self.numel(), 1});
  const Tensor first = std::get<0>(aten::_unique_rows(column, false, false, false));
  return aten::put(aten::zeros_like(self), first, grad);
}

}  // namespace treadle::autograd
