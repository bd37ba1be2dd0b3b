// Fused steps of SGD, Adam, AdamW and Adagrad: a kernel for each parameter, none of which the host
// waits for.
//
// SPDX-License-Identifier: Apache-2.0
#include "family.h"
#include "kernels.h"

namespace treadle_opencl {

namespace plugin = treadle::plugin;
using plugin::DType;
using plugin::Number;
using plugin::Tensor;
using Tensors = std::vector<Tensor>;

namespace {

constexpr Family kFamily = {
    "steps",
#include "../cl/steps.cl"
};

// A tensor of the step's geometry: dense and in the dtype that is computed in; what is not is
// replaced by a copy, which done() copies back.
class Side {
 public:
  Side(const Tensor& tensor, bool written) : tensor_(tensor), used_(widened(tensor)) {
    copied_ = written && tensor.defined() && used_.handle() != tensor.handle();
  }
  const Tensor& tensor() const { return used_; }
  void done() const {
    if (copied_) copy_elements(used_, tensor_);
  }

 private:
  Tensor tensor_, used_;
  bool copied_;
};

// A number that is held in a tensor, as one value of a dtype on the device.
Tensor number_on(const Tensor& number, DType dtype, const Tensor& like) {
  if (!number.defined()) return number;
  Tensor on_device = number;
  if (number.device().type != like.device().type) {
    on_device = plugin::empty(number.sizes(), number.dtype(), like.device());
    plugin::call("aten::copy_", on_device, number);
  }
  return packed_as(on_device, dtype);
}

void add_rules(Launch& launch, const Tensor& scale, const Tensor& skip, const Tensor& self,
               DType dtype) {
  add_optional(launch, number_on(scale, dtype, self), self);
  add_optional(launch, number_on(skip, dtype, self), self);
}

// The last arguments and the launch.
void over_parameter(Launch& launch, const Tensor& self) {
  launch.scalar<int64_t>(self.numel());
  over_elements(launch, device_of(self), self.numel());
}

void fused_sgd(const Tensors& self, const Tensors& grads, const Tensors& velocities,
               double weight_decay, double momentum, double lr, double dampening, bool nesterov,
               bool maximize, bool first, const Tensor& scale, const Tensor& skip) {
  for (size_t i = 0; i < self.size(); ++i) {
    if (self[i].numel() == 0) continue;
    const DType dtype = wide(self[i].dtype());
    const Side param(self[i], true), grad(grads[i], scale.defined());
    const Side velocity(momentum != 0 ? velocities[i] : Tensor(), true);
    Launch launch = kFamily.launch(device_of(self[i]), dtype, "sgd");
    launch.tensor(param.tensor()).tensor(grad.tensor());
    launch.tensor(velocity.tensor().defined() ? velocity.tensor() : param.tensor());
    add_rules(launch, scale, skip, self[i], dtype);
    for (const double number : {lr, weight_decay, momentum, 1 - dampening})
      add_value(launch, number, dtype);
    launch.scalar<int32_t>(nesterov).scalar<int32_t>(maximize).scalar<int32_t>(first);
    over_parameter(launch, param.tensor());
    param.done();
    grad.done();
    velocity.done();
  }
}

template <bool decoupled>
void fused_adam(const Tensors& self, const Tensors& grads, const Tensors& means,
                const Tensors& squares, const Tensors& largest, const Tensors& steps, double lr,
                double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
                bool maximize, const Tensor& scale, const Tensor& skip) {
  for (size_t i = 0; i < self.size(); ++i) {
    if (self[i].numel() == 0) continue;
    const DType dtype = wide(self[i].dtype());
    const Side param(self[i], true), grad(grads[i], scale.defined()), mean(means[i], true);
    const Side square(squares[i], true), top(amsgrad ? largest[i] : Tensor(), true);
    Launch launch = kFamily.launch(device_of(self[i]), dtype, "adam");
    launch.tensor(param.tensor()).tensor(grad.tensor()).tensor(mean.tensor());
    launch.tensor(square.tensor());
    add_optional(launch, top.tensor(), param.tensor());
    launch.tensor(number_on(steps[i], DType::Float32, self[i]));
    add_rules(launch, scale, skip, self[i], dtype);
    launch.scalar<double>(lr).scalar<double>(beta1).scalar<double>(beta2);
    add_value(launch, decoupled ? 0 : weight_decay, dtype);
    add_value(launch, decoupled ? 1 - lr * weight_decay : 1, dtype);
    add_value(launch, eps, dtype);
    launch.scalar<int32_t>(maximize);
    over_parameter(launch, param.tensor());
    for (const Side* side : {&param, &grad, &mean, &square, &top}) side->done();
  }
}

void fused_adagrad(const Tensors& self, const Tensors& grads, const Tensors& sums,
                   const Tensors& steps, double lr, double decay, double weight_decay, double eps,
                   bool maximize, const Tensor& scale, const Tensor& skip) {
  for (size_t i = 0; i < self.size(); ++i) {
    if (self[i].numel() == 0) continue;
    const DType dtype = wide(self[i].dtype());
    const Side param(self[i], true), grad(grads[i], scale.defined()), sum(sums[i], true);
    Launch launch = kFamily.launch(device_of(self[i]), dtype, "adagrad");
    launch.tensor(param.tensor()).tensor(grad.tensor()).tensor(sum.tensor());
    launch.tensor(number_on(steps[i], DType::Float32, self[i]));
    add_rules(launch, scale, skip, self[i], dtype);
    launch.scalar<double>(lr).scalar<double>(decay);
    add_value(launch, weight_decay, dtype);
    add_value(launch, eps, dtype);
    launch.scalar<int32_t>(maximize);
    over_parameter(launch, param.tensor());
    for (const Side* side : {&param, &grad, &sum}) side->done();
  }
}

}  // namespace

void register_steps(treadle_device_type type) {
  const auto floating = floating_dtypes();
  plugin::register_kernel<&fused_sgd>(
      "_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, "
      "float weight_decay, float momentum, float lr, float dampening, bool nesterov, bool "
      "maximize, "
      "bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
      type, floating);
  const std::string adam =
      "(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, "
      "Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, "
      "float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, "
      "Tensor? "
      "found_inf=None) -> ()";
  plugin::register_kernel<&fused_adam<false>>(("_fused_adam_" + adam).c_str(), type, floating);
  plugin::register_kernel<&fused_adam<true>>(("_fused_adamw_" + adam).c_str(), type, floating);
  plugin::register_kernel<&fused_adagrad>(
      "_fused_adagrad_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor[] "
      "state_steps, *, float lr, float lr_decay, float weight_decay, float eps, bool maximize, "
      "Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
      type, floating);
}

}  // namespace treadle_opencl
