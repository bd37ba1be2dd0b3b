// Layers wrap an operator's call on any device (profiling, autograd, ...). A call takes the
// outermost active layer first. A layer passes the call on with ExcludeLayers, which excludes the
// layer itself and everything outside it.
//
// Active = (layers of the tensors | layers included on this thread) & ~(layers excluded on this
// thread)
//          & layers the operator has a kernel for.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace treadle {

// Outermost first: a smaller number runs earlier.
enum class Layer : uint8_t {
  PythonHook = 0,
  Profiler = 1,
  Autocast = 2,
  Functional = 3,
  // Tensors of another layout than strided. Its rules compute with their parts, which are strided
  // tensors, so autograd and the layers below it see those (aten/engine/layouts.h).
  Layout = 4,
  Autograd = 5,
  // Python code that takes over operators: modes of this thread, and classes of tensors
  // (python_bindings/csrc/dispatch/dispatch_modes.h).
  Dispatch = 6,
  // Tensors whose bytes kernels would misread: lazily conjugated or negated ones, and those of a
  // storage-only type. Kernels receive substitutes (aten/engine/resolve.cc).
  Resolve = 7
};
inline constexpr int kNumLayers = 8;
using LayerMask = uint8_t;
constexpr LayerMask layer_bit(Layer l) { return static_cast<LayerMask>(1u << static_cast<int>(l)); }
std::string_view name_of(Layer layer);

struct LayerState {
  LayerMask included = 0;
  LayerMask excluded = 0;
};

// Autograd modes of this thread.
struct AutogradMode {
  bool grad = true;
  bool inference = false;
};

namespace detail {
#if defined(__GNUC__)
extern thread_local constinit LayerState layer_state __attribute__((tls_model("initial-exec")));
extern thread_local constinit AutogradMode autograd_mode __attribute__((tls_model("initial-exec")));
#endif
}  // namespace detail
inline LayerState& layer_state() { return detail::layer_state; }
inline AutogradMode& autograd_mode() { return detail::autograd_mode; }
inline bool grad_enabled() { return detail::autograd_mode.grad; }
inline bool inference_enabled() { return detail::autograd_mode.inference; }

// During the scope's life, this thread's calls skip `layer` and every layer outside it.
class ExcludeLayers {
 public:
  explicit ExcludeLayers(Layer layer) : saved_(layer_state().excluded) {
    layer_state().excluded |= static_cast<LayerMask>((layer_bit(layer) << 1) - 1);
  }
  ~ExcludeLayers() { layer_state().excluded = saved_; }
  ExcludeLayers(const ExcludeLayers&) = delete;
  ExcludeLayers& operator=(const ExcludeLayers&) = delete;

 private:
  LayerMask saved_;
};

class IncludeLayer {
 public:
  explicit IncludeLayer(Layer layer) : saved_(layer_state().included) {
    layer_state().included |= layer_bit(layer);
  }
  ~IncludeLayer() { layer_state().included = saved_; }
  IncludeLayer(const IncludeLayer&) = delete;
  IncludeLayer& operator=(const IncludeLayer&) = delete;

 private:
  LayerMask saved_;
};

class GradMode {
 public:
  explicit GradMode(bool enabled) : saved_(autograd_mode().grad) { autograd_mode().grad = enabled; }
  ~GradMode() { autograd_mode().grad = saved_; }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool saved_;
};
struct NoGrad : GradMode {
  NoGrad() : GradMode(false) {}
};

}  // namespace treadle
