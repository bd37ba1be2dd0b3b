// Registration of hand-written kernels, whose calls are counted (treadle.backends.coverage), and
// the few headers that all of them need.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cuda/backend.h"
#include "aten/backend/cuda/device_guard.h"
#include "core/dispatch/call_counts.h"
#include "core/dispatch/operator.h"
#include "core/tensor/tensor.h"

namespace treadle::cuda {

using Floats = TypeList<float, double, Half, BFloat16>;

// The dtypes that an operator's entry declares.
template <class Op>
using DeclaredTypes = typename Op::template Types<DeviceType::CPU>;

template <class Op>
NativeCalls& native_calls() {
  static auto* calls = new NativeCalls(DeviceType::CUDA, Op::op);
  return *calls;
}
// While it exists, this thread's calls are not cast, because a kernel's inner operators must not
// follow autocast.
class Uncast {
 public:
  Uncast() : saved_(layer_state().excluded) {
    layer_state().excluded |= layer_bit(Layer::Autocast);
  }
  ~Uncast() { layer_state().excluded = saved_; }
  Uncast(const Uncast&) = delete;

 private:
  LayerMask saved_;
};

// A kernel whose calls are counted.
template <class Op, class Factory, class T, class Kernel = typename Op::Kernel>
struct Counted;
template <class Op, class Factory, class T, class R, class... Args>
struct Counted<Op, Factory, T, R(Args...)> {
  static R call(Args... args) {
    native_calls<Op>().calls.fetch_add(1, std::memory_order_relaxed);
    const Uncast uncast;
    return Factory().template operator()<T>()(std::forward<Args>(args)...);
  }
};

// Registers a kernel for the dtypes of the list: `factory.template operator()<T>()` gives that of
// T.
template <class Op, class... Ts, class Factory>
Registration register_cuda(TypeList<Ts...>, Factory, const char* name,
                           SourceLocation at = SourceLocation::here()) {
  std::array<void*, kMaxScalarTypes> kernels{};
  ((kernels[static_cast<size_t>(scalar_type_of<Ts>)] = reinterpret_cast<void*>(
        static_cast<typename Op::Kernel*>(&Counted<Op, Factory, Ts>::call))),
   ...);
  return register_row(Op::op, DeviceType::CUDA, Layout::Strided, kernels,
                      KernelOrigin{KernelSource::DeviceLayout, at.file, at.line, name});
}

}  // namespace treadle::cuda
