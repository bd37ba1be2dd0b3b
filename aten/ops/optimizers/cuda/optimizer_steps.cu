// One step of an optimiser over all its parameters in one call: SGD, Adam, AdamW and Adagrad, by
// the formulas of aten/ops/optimizers/cpu/optimizer_steps.cc. The scale of a loss and its overflow
// flag may be on the device. Kernels read them there, so the host does not wait.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/_fused_adagrad_.h"
#include "aten/ops/_fused_adam_.h"
#include "aten/ops/_fused_adamw_.h"
#include "aten/ops/_fused_sgd_.h"
#include "aten/ops/_local_scalar_dense.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/copy_.h"
#include "aten/ops/to.h"

namespace treadle::cuda {
namespace {

// The changes of a gradient before an algorithm uses it.
struct GradientRule {
  double sign, weight_decay;
  const float* scale;      // of the loss, which the gradient is divided by; null: none
  const float* found_inf;  // 1: the step is skipped; null: it is not
};

template <class T>
__device__ inline Computed<T> gradient(const GradientRule& rule, T* place, Computed<T> param) {
  using C = Computed<T>;
  C g = widened(*place);
  if (rule.scale) {
    g = g / static_cast<C>(*rule.scale);
    *place = narrowed<T>(g);
  }
  if (rule.sign < 0) g = -g;
  return rule.weight_decay == 0 ? g : g + static_cast<C>(rule.weight_decay) * param;
}

struct SgdStep {
  GradientRule rule;
  double lr, momentum, dampening;
  bool nesterov, first;
};
template <class T>
__global__ void sgd_kernel(SgdStep step, int64_t n, T* param, T* grad, T* velocity) {
  using C = Computed<T>;
  if (step.rule.found_inf && *step.rule.found_inf == 1) return;
  const C lr = static_cast<C>(step.lr), momentum = static_cast<C>(step.momentum);
  const C fresh = static_cast<C>(1 - step.dampening);
  for_each_element(n, [=](int64_t i) {
    const C p = widened(param[i]);
    C g = gradient(step.rule, grad + i, p);
    if (step.momentum != 0) {
      const C v = step.first ? g : momentum * widened(velocity[i]) + fresh * g;
      velocity[i] = narrowed<T>(v);
      g = step.nesterov ? g + momentum * v : v;
    }
    param[i] = narrowed<T>(p - lr * g);
  });
}

struct AdamStep {
  GradientRule rule;
  double shrink;  // of the parameter itself, 1 where it stays
  double beta1, beta2, eps;
  double step_size, root_scale;  // lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t)
  bool amsgrad;
};
template <class T>
__global__ void adam_kernel(AdamStep step, int64_t n, T* param, T* grad, T* means, T* squares,
                            T* largest) {
  using C = Computed<T>;
  if (step.rule.found_inf && *step.rule.found_inf == 1) return;
  const C fresh1 = static_cast<C>(1 - step.beta1), beta2 = static_cast<C>(step.beta2);
  const C fresh2 = static_cast<C>(1 - step.beta2), eps = static_cast<C>(step.eps);
  const C size = static_cast<C>(step.step_size), root = static_cast<C>(step.root_scale);
  for_each_element(n, [=](int64_t i) {
    C p = widened(param[i]);
    const C g = gradient(step.rule, grad + i, p);
    if (step.shrink != 1) p = p * static_cast<C>(step.shrink);
    const C old = widened(means[i]), mean = old + fresh1 * (g - old);
    C square = beta2 * widened(squares[i]) + fresh2 * g * g;
    means[i] = narrowed<T>(mean);
    squares[i] = narrowed<T>(square);
    if (step.amsgrad) {
      square = Larger()(widened(largest[i]), square);
      largest[i] = narrowed<T>(square);
    }
    param[i] = narrowed<T>(p - size * (mean / (sqrt(square) * root + eps)));
  });
}

struct AdagradStep {
  GradientRule rule;
  double lr, eps;  // lr / (1 + (t - 1) lr_decay)
};
template <class T>
__global__ void adagrad_kernel(AdagradStep step, int64_t n, T* param, T* grad, T* sums) {
  using C = Computed<T>;
  if (step.rule.found_inf && *step.rule.found_inf == 1) return;
  const C lr = static_cast<C>(step.lr), eps = static_cast<C>(step.eps);
  for_each_element(n, [=](int64_t i) {
    const C p = widened(param[i]);
    const C g = gradient(step.rule, grad + i, p);
    const C sum = widened(sums[i]) + g * g;
    sums[i] = narrowed<T>(sum);
    param[i] = narrowed<T>(p - lr * (g / (sqrt(sum) + eps)));
  });
}

// A number of the call as a float32 on the device, where kernels read it; undefined stays so.
Tensor on_device(const Tensor& number, const Tensor& beside) {
  if (!number.defined()) return number;
  return aten::contiguous(aten::to(number, ScalarType::Float32, std::nullopt, beside.device(),
                                   std::nullopt, false, false, std::nullopt));
}
const float* data_of(const Tensor& t) { return t.defined() ? t.data_as<float>() : nullptr; }

// The tensors of the lists at one index, contiguous for the duration of a launch. Tensors that are
// not contiguous are copied, and written ones are copied back.
template <class T>
class AtPlace {
 public:
  T* of(TensorList list, size_t i) {
    if (i >= list.size() || !list[i].defined()) return nullptr;
    const Tensor packed = aten::contiguous(list[i]);
    if (!list[i].is_contiguous()) copies_.emplace_back(list[i], packed);
    held_.push_back(packed);
    return packed.data_as<T>();
  }
  void write_back() {
    for (const auto& [target, copy] : copies_) aten::copy_(target, copy);
  }

 private:
  std::vector<Tensor> held_;
  std::vector<std::pair<Tensor, Tensor>> copies_;
};

template <class T>
void fused_sgd_cuda(TensorList self, TensorList grads, TensorList momentum_buffer_list,
                    double weight_decay, double momentum, double lr, double dampening,
                    bool nesterov, bool maximize, bool is_first_step, const Tensor& grad_scale,
                    const Tensor& found_inf) {
  if (self.empty()) return;
  const Tensor scale = on_device(grad_scale, self[0]), found = on_device(found_inf, self[0]);
  const SgdStep step{{maximize ? -1.0 : 1.0, weight_decay, data_of(scale), data_of(found)},
                     lr,
                     momentum,
                     dampening,
                     nesterov,
                     is_first_step};
  const Place place(self[0]);
  for (size_t i = 0; i < self.size(); ++i) {
    const int64_t n = self[i].numel();
    if (n == 0) continue;
    AtPlace<T> at;
    T *const param = at.of(self, i), *const grad = at.of(grads, i);
    T* const velocity = momentum != 0 ? at.of(momentum_buffer_list, i) : nullptr;
    sgd_kernel<T><<<blocks_for(n), kBlock, 0, place.stream>>>(step, n, param, grad, velocity);
    check_launched();
    at.write_back();
  }
}

// Adam, and with `decoupled` AdamW.
template <class T, bool decoupled>
void fused_adam_cuda(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                     TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1,
                     double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                     const Tensor& grad_scale, const Tensor& found_inf) {
  if (self.empty()) return;
  const Tensor scale = on_device(grad_scale, self[0]), found = on_device(found_inf, self[0]);
  const GradientRule rule{maximize ? -1.0 : 1.0, decoupled ? 0 : weight_decay, data_of(scale),
                          data_of(found)};
  const Place place(self[0]);
  for (size_t i = 0; i < self.size(); ++i) {
    const int64_t n = self[i].numel();
    if (n == 0) continue;
    const double t = aten::ops::_local_scalar_dense::base(state_steps[i]).to<double>();
    const AdamStep step{rule,
                        decoupled ? 1 - lr * weight_decay : 1,
                        beta1,
                        beta2,
                        eps,
                        lr / (1 - std::pow(beta1, t)),
                        1 / std::sqrt(1 - std::pow(beta2, t)),
                        amsgrad};
    AtPlace<T> at;
    T *const param = at.of(self, i), *const grad = at.of(grads, i);
    T *const means = at.of(exp_avgs, i), *const squares = at.of(exp_avg_sqs, i);
    T* const largest = amsgrad ? at.of(max_exp_avg_sqs, i) : nullptr;
    adam_kernel<T>
        <<<blocks_for(n), kBlock, 0, place.stream>>>(step, n, param, grad, means, squares, largest);
    check_launched();
    at.write_back();
  }
}

template <class T>
void fused_adagrad_cuda(TensorList self, TensorList grads, TensorList state_sums,
                        TensorList state_steps, double lr, double lr_decay, double weight_decay,
                        double eps, bool maximize, const Tensor& grad_scale,
                        const Tensor& found_inf) {
  if (self.empty()) return;
  const Tensor scale = on_device(grad_scale, self[0]), found = on_device(found_inf, self[0]);
  const GradientRule rule{maximize ? -1.0 : 1.0, weight_decay, data_of(scale), data_of(found)};
  const Place place(self[0]);
  for (size_t i = 0; i < self.size(); ++i) {
    const int64_t n = self[i].numel();
    if (n == 0) continue;
    const double t = aten::ops::_local_scalar_dense::base(state_steps[i]).to<double>();
    AtPlace<T> at;
    T *const param = at.of(self, i), *const grad = at.of(grads, i);
    T* const sums = at.of(state_sums, i);
    adagrad_kernel<T><<<blocks_for(n), kBlock, 0, place.stream>>>(
        AdagradStep{rule, lr / (1 + (t - 1) * lr_decay), eps}, n, param, grad, sums);
    check_launched();
    at.write_back();
  }
}

const auto sgd_registered = register_cuda<aten::ops::_fused_sgd_>(
    Floats(), []<class T>() { return &fused_sgd_cuda<T>; }, "fused_sgd_cuda");
const auto adam_registered = register_cuda<aten::ops::_fused_adam_>(
    Floats(), []<class T>() { return &fused_adam_cuda<T, false>; }, "fused_adam_cuda");
const auto adamw_registered = register_cuda<aten::ops::_fused_adamw_>(
    Floats(), []<class T>() { return &fused_adam_cuda<T, true>; }, "fused_adamw_cuda");
const auto adagrad_registered = register_cuda<aten::ops::_fused_adagrad_>(
    Floats(), []<class T>() { return &fused_adagrad_cuda<T>; }, "fused_adagrad_cuda");

}  // namespace
}  // namespace treadle::cuda
