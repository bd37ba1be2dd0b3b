// Autocast: within it, operators that are fast in 16 bits take their floating tensors in 16 bits,
// and operators that need float32 take them in float32. `autocast:` in native_functions.yaml says
// which operator does which. The generator makes the functions of the layer Autocast from it, each
// like
//
//   Tensor mm(const Tensor& self, const Tensor& mat2) {
//     const ExcludeLayers below(Layer::Autocast);
//     const autocast::Cast cast(autocast::Policy::Lower, self, mat2);
//     return dispatch<ops::mm>(cast(self), cast(mat2));
//   }
//
// Where devices differ (`autocast: {CUDA: float32}`), the entry gives the policy of each. A call on
// a device without a policy skips the layer.
//
// The layer is outside autograd, so casts are recorded, and a gradient has the dtype that its
// tensor had before the cast. The layer is on for a thread while autocast is enabled for a device.
// Elsewhere it costs nothing: it is one more bit of the mask that a call tests anyway.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "core/base/device.h"
#include "core/base/layers.h"
#include "core/tensor/tensor.h"

namespace treadle::autocast {

// ---- what is set on this thread

bool is_enabled(DeviceType device);
void set_enabled(DeviceType device, bool enabled);
// The 16-bit dtype of the device's operators: bfloat16 on the CPU and float16 elsewhere, unless
// set.
ScalarType lower_dtype(DeviceType device);
void set_lower_dtype(DeviceType device, ScalarType dtype);

// Whether the 16-bit copies of leaves that need a gradient (the weights) are cached, so that a
// weight that is used many times is converted once.
bool is_cache_enabled();
void set_cache_enabled(bool enabled);
void clear_cache();

// Counts the contexts that this thread is in; each returns the new count. The caller that leaves
// the last one clears the cache.
int enter();
int leave();

// ---- what an operator's function uses

// AsCalled also disables casts in the operators that the operator is composed of. With None, those
// follow their own entries.
enum class Policy { None, AsCalled, Lower, Float32, Widest, Refused };

// The policies of an entry: for all devices, and those it gives for the CPU and for CUDA.
struct Policies {
  Policy all = Policy::None;
  Policy cpu = all;
  Policy cuda = all;

  Policy on(DeviceType device) const;
};

// Decides the dtype to which an operator's tensors are cast, from its policy and the tensors.
class Cast {
 public:
  template <class... Arguments>
  explicit Cast(Policies policies, const Arguments&... arguments) {
    (see(arguments), ...);
    settle(policies);
  }
  template <class... Arguments>
  explicit Cast(Policy policy, const Arguments&... arguments)
      : Cast(Policies{.all = policy}, arguments...) {}

  // None also where autocast is enabled for no tensor's device.
  Policy policy() const { return policy_; }
  // Raises RuntimeError for a call of an operator that the device refuses.
  [[noreturn]] void refuse(std::string_view op) const;
  // The argument, or a copy of it in that dtype if it is subject to autocast: on the device, with a
  // floating dtype up to float32.
  Tensor operator()(const Tensor& argument) const;
  std::vector<Tensor> operator()(TensorList argument) const;

 private:
  void see(const Tensor& argument);
  void see(TensorList arguments);
  void settle(const Policies& policies);
  bool subject(const Tensor& argument) const;
  bool casts() const {
    return policy_ == Policy::Lower || policy_ == Policy::Float32 || policy_ == Policy::Widest;
  }

  Policy policy_ = Policy::None;
  bool found_ = false;  // a tensor on a device for which autocast is enabled, which is device_
  bool all_lower_ = true;
  DeviceType device_ = DeviceType::CPU;
  ScalarType lower_ = ScalarType::Float32, target_ = ScalarType::Float32;
};

}  // namespace treadle::autocast
