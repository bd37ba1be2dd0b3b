// All checks come first, so that a step that begins also completes.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/optimizers/shape.h"

#include <vector>

#include "aten/engine/overlap.h"
#include "aten/engine/tensor_lists.h"

namespace treadle::shape {
namespace {

// A number is on the device of its tensors, or on the CPU.
void one_number(const char* op, const char* name, const Tensor& t, Device device) {
  if (t.numel() != 1 || t.is_complex()) [[unlikely]]
    fail<ErrorKind::Runtime>(OpName(op), "expected ", name, " to be one real number, got ", t);
  if (t.device() != device && !t.is_cpu()) [[unlikely]]
    fail<ErrorKind::Runtime>(OpName(op), "expected ", name, " on ", device, ", got ", t.device());
}

// The arguments of every step: parameters and their state, which are written, gradients, and the
// numbers of a scaled loss. `state` may leave out lists that are not used.
void lists(const char* op, TensorList self, TensorList grads,
           std::initializer_list<std::pair<NamedList, bool>> state, const Tensor& grad_scale,
           const Tensor& found_inf) {
  std::vector<NamedList> alike = {{"self", self}, {"grads", grads}};
  for (const auto& [list, used] : state) {
    if (used || !list.list.empty()) alike.push_back(list);
  }
  require_alike(op, alike);
  for (size_t i = 0; i < alike.size(); ++i) {
    const bool gradients = i == 1;
    if (!gradients || grad_scale.defined()) require_writable(op, alike[i].list);
  }
  const Device device = self[0].device();
  if (found_inf.defined()) one_number(op, "found_inf", found_inf, device);
  if (grad_scale.defined()) one_number(op, "grad_scale", grad_scale, device);
}

void counts(const char* op, TensorList self, TensorList state_steps) {
  check<ErrorKind::Runtime>(
      state_steps.size() == self.size(), OpName(op), "expected state_steps to hold ", self.size(),
      self.size() == 1 ? " tensor" : " tensors", ", as self does, got ", state_steps.size());
  for (const Tensor& step : state_steps)
    one_number(op, "a tensor of state_steps", step, self[0].device());
}

}  // namespace

void adam_lists(const char* op, TensorList self, TensorList grads, TensorList exp_avgs,
                TensorList exp_avg_sqs, TensorList max_exp_avg_sqs, TensorList state_steps,
                bool amsgrad, const Tensor& grad_scale, const Tensor& found_inf) {
  lists(op, self, grads,
        {{{"exp_avgs", exp_avgs}, true},
         {{"exp_avg_sqs", exp_avg_sqs}, true},
         {{"max_exp_avg_sqs", max_exp_avg_sqs}, amsgrad}},
        grad_scale, found_inf);
  counts(op, self, state_steps);
}

void sgd_lists(const char* op, TensorList self, TensorList grads, TensorList momentum_buffer_list,
               double momentum, const Tensor& grad_scale, const Tensor& found_inf) {
  lists(op, self, grads, {{{"momentum_buffer_list", momentum_buffer_list}, momentum != 0}},
        grad_scale, found_inf);
}

void adagrad_lists(const char* op, TensorList self, TensorList grads, TensorList state_sums,
                   TensorList state_steps, const Tensor& grad_scale, const Tensor& found_inf) {
  lists(op, self, grads, {{{"state_sums", state_sums}, true}}, grad_scale, found_inf);
  counts(op, self, state_steps);
}

}  // namespace treadle::shape
