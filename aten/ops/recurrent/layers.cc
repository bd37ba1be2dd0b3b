// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/recurrent/layers.h"

#include "aten/ops/cat.h"
#include "aten/ops/narrow.h"

namespace treadle::composite {

RecurrentWeights RecurrentLayers::weights_at(int64_t index, bool projected,
                                             TensorList params) const {
  const int64_t each = weights_each(projected);
  const auto param = [&](int64_t k) { return params[static_cast<size_t>(index * each + k)]; };
  RecurrentWeights w{param(0), param(1), {}, {}, {}};
  if (has_biases) w.b_ih = param(2), w.b_hh = param(3);
  if (projected) w.w_hr = param(each - 1);
  return w;
}

RecurrentSteps::RecurrentSteps(const Tensor& input, IntList batch_sizes, bool reverse)
    : rows_(batch_sizes), reverse_(reverse) {
  if (batch_sizes.empty()) rows_ = DimVector(static_cast<size_t>(input.size(0)), input.size(1));
}

Tensor RecurrentSteps::before(int64_t step, const std::vector<Tensor>& after,
                              const Tensor& initial) const {
  if (!initial.defined()) return initial;
  const int64_t n = rows_[static_cast<size_t>(step)], previous = reverse_ ? step + 1 : step - 1;
  const bool first = previous < 0 || previous == count();
  const Tensor& from = first ? initial : after[static_cast<size_t>(previous)];
  const int64_t there = from.size(0);
  if (n == there) return from;
  if (n < there) return aten::narrow(from, 0, 0, n);
  const Tensor both[] = {from, aten::narrow(initial, 0, there, n - there)};
  return aten::cat(TensorList(both, 2));
}

Tensor RecurrentSteps::last(const std::vector<Tensor>& after) const {
  if (reverse_) return after[0];  // the longest sequences begin there, so all end there
  std::vector<Tensor> ended;
  int64_t done = 0;
  for (int64_t step = count() - 1; step >= 0; --step) {
    const int64_t n = rows_[static_cast<size_t>(step)];
    if (n == done) continue;
    ended.push_back(aten::narrow(after[static_cast<size_t>(step)], 0, done, n - done));
    done = n;
  }
  return ended.size() == 1 ? ended[0] : aten::cat(ended);
}

}  // namespace treadle::composite
