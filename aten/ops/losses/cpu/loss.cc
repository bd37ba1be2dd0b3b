// Negative log likelihood of class indices, and its gradient. Every class index is checked before
// the computation starts.
//
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/nll_loss_backward.h"
#include "aten/ops/nll_loss_forward.h"
#include "core/base/error.h"

namespace treadle::cpu {
namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

// The class index of each sample; IndexError for one that is neither a class nor ignored.
std::vector<int64_t> classes(const Tensor& target, int64_t count, int64_t ignore_index) {
  const Tensor t = aten::contiguous(target);
  std::vector<int64_t> out(t.data_as<int64_t>(), t.data_as<int64_t>() + t.numel());
  for (const int64_t c : out) {
    check<ErrorKind::Index>(c == ignore_index || (c >= 0 && c < count), OpName("nll_loss"),
                            "expected target in [0, ", count, ") or ignore_index = ", ignore_index,
                            ", got ", c);
  }
  return out;
}

template <class T>
void nll_loss_forward_cpu(const Tensor& self, const Tensor& target, const Tensor& weight,
                          int64_t reduction, int64_t ignore_index, const Tensor& output,
                          const Tensor& total_weight) {
  using C = compute_type<T>;
  const std::vector<int64_t> index = classes(target, self.sizes()[1], ignore_index);
  const Tensor w = weight.defined() ? aten::contiguous(weight) : weight;
  const T* x = self.data_as<T>();
  wide_type<C> sum = 0, total = 0;
  for (size_t n = 0; n < index.size(); ++n) {
    const bool counts = index[n] != ignore_index;
    const C factor = !counts ? C(0) : w.defined() ? static_cast<C>(w.data_as<T>()[index[n]]) : C(1);
    const C loss =
        counts
            ? -factor *
                  static_cast<C>(
                      x[static_cast<int64_t>(n) * self.strides()[0] + index[n] * self.strides()[1]])
            : C(0);
    if (reduction == kNone) output.data_as<T>()[n] = static_cast<T>(loss);
    sum += loss;
    total += factor;
  }
  *total_weight.data_as<T>() = static_cast<T>(static_cast<C>(total));
  if (reduction != kNone)
    *output.data_as<T>() = static_cast<T>(static_cast<C>(reduction == kMean ? sum / total : sum));
}

template <class T>
void nll_loss_backward_cpu(const Tensor& grad, const Tensor& self, const Tensor& target,
                           const Tensor& weight, int64_t reduction, int64_t ignore_index,
                           const Tensor& total_weight, const Tensor& out) {
  using C = compute_type<T>;
  const int64_t count = self.sizes()[1];
  const std::vector<int64_t> index = classes(target, count, ignore_index);
  const Tensor w = weight.defined() ? aten::contiguous(weight) : weight;
  const Tensor g = aten::contiguous(grad);
  std::fill_n(out.data_as<T>(), out.numel(), T(0));
  const C scale = reduction == kMean ? C(1) / static_cast<C>(*total_weight.data_as<T>()) : C(1);
  for (size_t n = 0; n < index.size(); ++n) {
    if (index[n] == ignore_index) continue;
    const C factor = w.defined() ? static_cast<C>(w.data_as<T>()[index[n]]) : C(1);
    const C from = static_cast<C>(g.data_as<T>()[reduction == kNone ? n : 0]);
    out.data_as<T>()[static_cast<int64_t>(n) * count + index[n]] =
        static_cast<T>(-factor * scale * from);
  }
}

const auto forward_registered = register_kernels<aten::ops::nll_loss_forward, DeviceType::CPU>(
    []<class T>() { return &nll_loss_forward_cpu<T>; }, "nll_loss_forward_cpu");
const auto backward_registered = register_kernels<aten::ops::nll_loss_backward, DeviceType::CPU>(
    []<class T>() { return &nll_loss_backward_cpu<T>; }, "nll_loss_backward_cpu");

}  // namespace
}  // namespace treadle::cpu
