// The thread's autocast state, the casts, and the cache of cast weights.
//
// SPDX-License-Identifier: Apache-2.0

#include "autograd/autocast.h"

#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "aten/ops/to.h"
#include "autograd/meta.h"
#include "core/base/error.h"
#include "core/device/backend.h"

namespace treadle::autocast {
namespace {

struct DeviceState {
  bool enabled = false;
  std::optional<ScalarType> dtype;  // as it was set
};

// A cast weight. It is out of date once the weight was written, and one cast without recording is
// of no use where a gradient is wanted.
struct CachedCast {
  Tensor weight;  // held, so that no other tensor can get its address
  Tensor cast;
  uint32_t version;
};
using Cache = std::unordered_map<const TensorImpl*, CachedCast>;

struct ThreadState {
  std::array<DeviceState, kMaxDeviceTypes> devices{};
  bool cache_enabled = true;
  int depth = 0;
  // Not destroyed with the thread, which may end after the interpreter: a tensor in it may own a
  // Python object. Leaving the last context frees it.
  Cache* cache = nullptr;
};
thread_local constinit ThreadState state;

DeviceState& state_of(DeviceType device) { return state.devices[static_cast<size_t>(device)]; }

bool worth_caching(const Tensor& t) {
  return state.cache_enabled && t.dtype() == ScalarType::Float32 && t.requires_grad() &&
         autograd::is_leaf(t) && !autograd::view_of(t);
}

Tensor cached(const Tensor& weight, ScalarType dtype) {
  if (!state.cache) state.cache = new Cache;
  const uint32_t version = weight.impl()->version();
  CachedCast& entry = (*state.cache)[weight.impl()];
  const bool fresh = entry.cast.defined() && entry.version == version &&
                     entry.cast.dtype() == dtype &&
                     entry.cast.requires_grad() == autograd::records(weight);
  if (!fresh) entry = {weight, aten::to(weight, dtype), version};
  return entry.cast;
}

}  // namespace

bool is_enabled(DeviceType device) { return state_of(device).enabled; }

void set_enabled(DeviceType device, bool enabled) {
  state_of(device).enabled = enabled;
  bool any = false;
  for (const DeviceState& d : state.devices) any = any || d.enabled;
  LayerMask& included = layer_state().included;
  const LayerMask bit = layer_bit(Layer::Autocast);
  included = static_cast<LayerMask>(any ? included | bit : included & ~bit);
}

ScalarType lower_dtype(DeviceType device) {
  if (const auto dtype = state_of(device).dtype) return *dtype;
  if (device == DeviceType::CPU) return ScalarType::BFloat16;
  const Backend* const backend = backend_of(device);
  return backend ? backend->facts().autocast_dtype : ScalarType::Float16;
}
void set_lower_dtype(DeviceType device, ScalarType dtype) { state_of(device).dtype = dtype; }

bool is_cache_enabled() { return state.cache_enabled; }
void set_cache_enabled(bool enabled) { state.cache_enabled = enabled; }

void clear_cache() {
  // Destroying the contents may run code, so the cache is detached first.
  delete std::exchange(state.cache, nullptr);
}

int enter() { return ++state.depth; }
int leave() { return --state.depth; }

Policy Policies::on(DeviceType device) const {
  switch (device) {
    case DeviceType::CPU:
      return cpu;
    case DeviceType::CUDA:
      return cuda;
    default:
      return all;
  }
}

void Cast::see(const Tensor& argument) {
  if (!argument.defined()) return;
  if (!found_ && is_enabled(argument.device().type)) {
    found_ = true;
    device_ = argument.device().type;
    lower_ = lower_dtype(device_);
  }
  if (subject(argument)) all_lower_ = all_lower_ && argument.dtype() == lower_;
}

void Cast::see(TensorList arguments) {
  for (const Tensor& argument : arguments) see(argument);
}

void Cast::settle(const Policies& policies) {
  if (found_) policy_ = policies.on(device_);
  const bool lower = policy_ == Policy::Lower || (policy_ == Policy::Widest && all_lower_);
  target_ = lower ? lower_ : ScalarType::Float32;
}

void Cast::refuse(std::string_view op) const {
  fail<ErrorKind::Runtime>(OpName(op), "expected a call outside of autocast(\"", name_of(device_),
                           "\"), as it is unsafe to autocast, got one within it");
}

bool Cast::subject(const Tensor& argument) const {
  return found_ && argument.defined() && argument.device().type == device_ &&
         argument.is_floating_point() && argument.dtype() != ScalarType::Float64;
}

Tensor Cast::operator()(const Tensor& argument) const {
  if (!casts() || !subject(argument) || argument.dtype() == target_) return argument;
  if (target_ == lower_ && worth_caching(argument)) return cached(argument, target_);
  return aten::to(argument, target_);
}

std::vector<Tensor> Cast::operator()(TensorList argument) const {
  std::vector<Tensor> cast;
  cast.reserve(argument.size());
  for (const Tensor& t : argument) cast.push_back((*this)(t));
  return cast;
}

}  // namespace treadle::autocast
