// One step of an optimiser over all its parameters in one call: SGD, Adam, AdamW and Adagrad. Each
// element is read once and written once. 16-bit tensors are computed in float32, a block at a time.
//
//   sgd:      v = momentum v + (1 - dampening) g,   p = p - lr v
//   adam:     m = m + (1 - beta1)(g - m),   s = beta2 s + (1 - beta2) g g,
//             p = p - lr / (1 - beta1^t) m / (sqrt(s) / sqrt(1 - beta2^t) + eps)
//   adagrad:  s = s + g g,   p = p - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)
//
// Polyak (1964); Kingma & Ba (2015); Reddi et al. (2018), amsgrad; Loshchilov & Hutter (2019),
// AdamW; Duchi et al. (2011).
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/optimizers/cpu/optimizer_steps.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>

#include "aten/scalar/math-inl.h"

#ifndef TREADLE_ATEN_CPU_OPTIMIZER_STEPS_TABLE
#define TREADLE_ATEN_CPU_OPTIMIZER_STEPS_TABLE
namespace treadle::cpu {

// The changes of a gradient before an algorithm uses it.
struct GradientRule {
  double sign = 1;          // -1 to maximise
  double weight_decay = 0;  // times the parameter is added
  double scale = 1;         // of the loss, which the gradient is divided by
  bool scaled = false;      // whether the gradient is written, divided
};

struct SgdStep {
  GradientRule gradient;
  double lr, momentum, dampening;
  bool nesterov, first;
};
struct AdamStep {
  GradientRule gradient;
  double shrink;  // of the parameter itself, 1 where it stays
  double beta1, beta2, eps;
  double step_size, root_scale;  // lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t)
  bool amsgrad;
};
struct AdagradStep {
  GradientRule gradient;
  double lr, eps;
};

// `p` holds the memory of the lists in the order of the operator's arguments.
template <class T>
struct StepLoops {
  void (*sgd)(const SgdStep& step, T* const* p, int64_t n);
  void (*adam)(const AdamStep& step, T* const* p, int64_t n);
  void (*adagrad)(const AdagradStep& step, T* const* p, int64_t n);
};

}  // namespace treadle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

template <class T>
struct StepTarget {
  using V = Vec<T>;

  // One vector of each list, all of them or the first `lanes`.
  struct Place {
    T* const* p;
    int64_t first, lanes;
    HWY_INLINE V get(size_t list) const { return load_lanes(p[list] + first, lanes); }
    HWY_INLINE void put(V v, size_t list) const { store_lanes(v, p[list] + first, lanes); }
  };
  template <class F>
  static HWY_INLINE void for_places(T* const* p, int64_t n, F f) {
    const int64_t whole = n / V::kLanes * V::kLanes;
#pragma GCC unroll 4
    for (int64_t i = 0; i < whole; i += V::kLanes) f(Place{p, i, V::kLanes});
    if (whole < n) f(Place{p, whole, n - whole});
  }

  static HWY_INLINE V number(double value) { return constant<V>(value); }

  static HWY_INLINE V gradient(const cpu::GradientRule& rule, const Place& at, V param) {
    V g = at.get(1);
    if (rule.scaled) {
      g = g / number(rule.scale);
      at.put(g, 1);
    }
    if (rule.sign < 0) g = -g;
    return rule.weight_decay == 0 ? g : g + number(rule.weight_decay) * param;
  }

  static void sgd(const cpu::SgdStep& step, T* const* p, int64_t n) {
    const V lr = number(step.lr), momentum = number(step.momentum);
    const V fresh = number(1 - step.dampening);
    for_places(p, n, [&](const Place& at) {
      const V param = at.get(0);
      V g = gradient(step.gradient, at, param);
      if (step.momentum != 0) {
        const V velocity = step.first ? g : momentum * at.get(2) + fresh * g;
        at.put(velocity, 2);
        g = step.nesterov ? g + momentum * velocity : velocity;
      }
      at.put(param - lr * g, 0);
    });
  }

  static void adam(const cpu::AdamStep& step, T* const* p, int64_t n) {
    const V fresh1 = number(1 - step.beta1), beta2 = number(step.beta2);
    const V fresh2 = number(1 - step.beta2), eps = number(step.eps), shrink = number(step.shrink);
    const V size = number(step.step_size), root = number(step.root_scale);
    for_places(p, n, [&](const Place& at) {
      V param = at.get(0);
      const V g = gradient(step.gradient, at, param);
      if (step.shrink != 1) param = param * shrink;
      const V old = at.get(2);
      const V mean = old + fresh1 * (g - old);
      V square = beta2 * at.get(3) + fresh2 * g * g;
      at.put(mean, 2);
      at.put(square, 3);
      if (step.amsgrad) {
        square = maximum(at.get(4), square);
        at.put(square, 4);
      }
      at.put(param - size * (mean / (sqrt(square) * root + eps)), 0);
    });
  }

  static void adagrad(const cpu::AdagradStep& step, T* const* p, int64_t n) {
    const V lr = number(step.lr), eps = number(step.eps);
    for_places(p, n, [&](const Place& at) {
      const V param = at.get(0);
      const V g = gradient(step.gradient, at, param);
      const V sum = at.get(2) + g * g;
      at.put(sum, 2);
      at.put(param - lr * (g / (sqrt(sum) + eps)), 0);
    });
  }

  static constexpr cpu::StepLoops<T> kLoops = {&sgd, &adam, &adagrad};
};

const cpu::StepLoops<float>& steps_float() { return StepTarget<float>::kLoops; }
const cpu::StepLoops<double>& steps_double() { return StepTarget<double>::kLoops; }

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <array>
#include <cmath>

#include "aten/backend/cpu/convert.h"
#include "aten/ops/_fused_adagrad_.h"
#include "aten/ops/_fused_adam_.h"
#include "aten/ops/_fused_adamw_.h"
#include "aten/ops/_fused_sgd_.h"
#include "aten/ops/optimizers/cpu/multi_tensor.h"

namespace treadle::simd {

HWY_EXPORT(steps_float);
HWY_EXPORT(steps_double);

template <class T>
static const cpu::StepLoops<T>& step_loops() {
  if constexpr (std::is_same_v<T, float>)
    return HWY_DYNAMIC_DISPATCH(steps_float)();
  else
    return HWY_DYNAMIC_DISPATCH(steps_double)();
}

}  // namespace treadle::simd

namespace treadle::cpu {
namespace {

// `f(place, p, n)` over runs of elements of T, in its compute type.
template <class T, class F>
void multi_tensor_apply_computed(ArrayRef<MultiTensorList> sides, F f) {
  using C = compute_type<T>;
  multi_tensor_apply(sides, [&](size_t place, char* const* memory, int64_t n) {
    std::array<C*, kMaxTensorLists> p{};
    if constexpr (std::is_same_v<T, C>) {
      for (size_t s = 0; s < sides.size(); ++s) p[s] = reinterpret_cast<C*>(memory[s]);
      f(place, p.data(), n);
    } else {
      constexpr int64_t kBlock = 512;
      C wide[kMaxTensorLists][kBlock];
      auto* const widen = simd::converter(scalar_type_of<T>, scalar_type_of<C>);
      auto* const narrow = simd::converter(scalar_type_of<C>, scalar_type_of<T>);
      for (int64_t first = 0; first < n; first += kBlock) {
        const int64_t count = std::min(kBlock, n - first);
        for (size_t s = 0; s < sides.size(); ++s) {
          if (memory[s] == nullptr) continue;
          p[s] = wide[s];
          widen(memory[s] + first * sizeof(T), sizeof(T), reinterpret_cast<char*>(p[s]), sizeof(C),
                count);
        }
        f(place, p.data(), count);
        for (size_t s = 0; s < sides.size(); ++s) {
          if (p[s] == nullptr || !sides[s].written) continue;
          narrow(reinterpret_cast<const char*>(p[s]), sizeof(C), memory[s] + first * sizeof(T),
                 sizeof(T), count);
        }
      }
    }
  });
}

double number_of(const Tensor& one) {
  double value;
  simd::converter(one.dtype(), ScalarType::Float64)(
      static_cast<const char*>(one.data()), 0, reinterpret_cast<char*>(&value), sizeof(value), 1);
  return value;
}

// Whether the gradients of a scaled loss overflowed. Then the step is skipped.
bool left_out(const Tensor& found_inf) { return found_inf.defined() && number_of(found_inf) == 1; }

GradientRule gradient_rule(bool maximize, double weight_decay, const Tensor& grad_scale) {
  GradientRule rule;
  rule.sign = maximize ? -1 : 1;
  rule.weight_decay = weight_decay;
  rule.scaled = grad_scale.defined();
  if (rule.scaled) rule.scale = number_of(grad_scale);
  return rule;
}

// The result of `make(t)` for the count of each index. Parameters of one group mostly have one
// count.
template <class Make>
auto steps_of(TensorList state_steps, Make make) {
  std::vector<decltype(make(0.0))> steps;
  steps.reserve(state_steps.size());
  double last = 0;
  for (const Tensor& count : state_steps) {
    const double t = number_of(count);
    if (!steps.empty() && t == last) {
      steps.push_back(steps.back());
    } else {
      steps.push_back(make(t));
    }
    last = t;
  }
  return steps;
}

template <class T>
void fused_sgd_cpu(TensorList self, TensorList grads, TensorList momentum_buffer_list,
                   double weight_decay, double momentum, double lr, double dampening, bool nesterov,
                   bool maximize, bool is_first_step, const Tensor& grad_scale,
                   const Tensor& found_inf) {
  if (left_out(found_inf)) return;
  const SgdStep step{gradient_rule(maximize, weight_decay, grad_scale),
                     lr,
                     momentum,
                     dampening,
                     nesterov,
                     is_first_step};
  const auto loop = simd::step_loops<compute_type<T>>().sgd;
  multi_tensor_apply_computed<T>(
      {{self, true}, {grads, step.gradient.scaled}, {momentum_buffer_list, momentum != 0}},
      [&](size_t, auto p, int64_t n) { loop(step, p, n); });
}

// Adam, and with `decoupled` AdamW.
template <class T, bool decoupled>
void fused_adam_cpu(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                    TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1,
                    double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                    const Tensor& grad_scale, const Tensor& found_inf) {
  if (left_out(found_inf)) return;
  const GradientRule rule = gradient_rule(maximize, decoupled ? 0 : weight_decay, grad_scale);
  const auto steps = steps_of(state_steps, [&](double t) {
    return AdamStep{rule,
                    decoupled ? 1 - lr * weight_decay : 1,
                    beta1,
                    beta2,
                    eps,
                    lr / (1 - std::pow(beta1, t)),
                    1 / std::sqrt(1 - std::pow(beta2, t)),
                    amsgrad};
  });
  const auto loop = simd::step_loops<compute_type<T>>().adam;
  multi_tensor_apply_computed<T>(
      {{self, true},
       {grads, rule.scaled},
       {exp_avgs, true},
       {exp_avg_sqs, true},
       {max_exp_avg_sqs, amsgrad}},
      [&](size_t place, auto p, int64_t n) { loop(steps[place], p, n); });
}

template <class T>
void fused_adagrad_cpu(TensorList self, TensorList grads, TensorList state_sums,
                       TensorList state_steps, double lr, double lr_decay, double weight_decay,
                       double eps, bool maximize, const Tensor& grad_scale,
                       const Tensor& found_inf) {
  if (left_out(found_inf)) return;
  const GradientRule rule = gradient_rule(maximize, weight_decay, grad_scale);
  const auto steps = steps_of(state_steps, [&](double t) {
    return AdagradStep{rule, lr / (1 + (t - 1) * lr_decay), eps};
  });
  const auto loop = simd::step_loops<compute_type<T>>().adagrad;
  multi_tensor_apply_computed<T>(
      {{self, true}, {grads, rule.scaled}, {state_sums, true}},
      [&](size_t place, auto p, int64_t n) { loop(steps[place], p, n); });
}

const auto sgd_registered = register_kernels<aten::ops::_fused_sgd_, DeviceType::CPU>(
    []<class T>() { return &fused_sgd_cpu<T>; }, "fused_sgd_cpu");
const auto adam_registered = register_kernels<aten::ops::_fused_adam_, DeviceType::CPU>(
    []<class T>() { return &fused_adam_cpu<T, false>; }, "fused_adam_cpu");
const auto adamw_registered = register_kernels<aten::ops::_fused_adamw_, DeviceType::CPU>(
    []<class T>() { return &fused_adam_cpu<T, true>; }, "fused_adamw_cpu");
const auto adagrad_registered = register_kernels<aten::ops::_fused_adagrad_, DeviceType::CPU>(
    []<class T>() { return &fused_adagrad_cpu<T>; }, "fused_adagrad_cpu");

}  // namespace
}  // namespace treadle::cpu
#endif  // HWY_ONCE
