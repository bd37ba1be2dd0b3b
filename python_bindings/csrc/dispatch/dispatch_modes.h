// __torch_dispatch__: Python code that handles operators below autograd. Modes that are open on
// this thread (TorchDispatchMode) and classes of tensors define it.
//
// It is Layer::Dispatch. A thread includes the layer while a mode is open, and tensors of such a
// class carry it. All other calls pay nothing, because a call tests its layers anyway. The
// innermost mode handles a call first, and is not open while it does. Its own calls go to the next
// mode, then to the classes of the tensors, subclasses before their bases, then to the kernel. A
// handler is below autograd and autocast, so its computations are not recorded.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/base/layers.h"
#include "python_bindings/csrc/tensors/tensor_object.h"

namespace treadle::python {

// The open modes of this thread, innermost last: owned references. Code that changes it calls
// include_dispatch().
std::vector<PyObject*>& dispatch_modes();
void include_dispatch();

// Whether the next composite operator of this thread is to call the operators that it consists of,
// instead of being handled itself.
bool& wants_parts();

// Whether a class of tensors has a __torch_dispatch__ of its own.
bool class_dispatches(PyTypeObject* type);
// Gives every operator the layer. Operators have it from the first use on.
void add_dispatch_layer();

// During its life, calls of this thread run below a set of layers.
class BelowLayers {
 public:
  explicit BelowLayers(LayerMask layers) : saved_(layer_state().excluded) {
    layer_state().excluded |= layers;
  }
  ~BelowLayers() { layer_state().excluded = saved_; }
  BelowLayers(const BelowLayers&) = delete;
  BelowLayers& operator=(const BelowLayers&) = delete;

 private:
  LayerMask saved_;
};
// The layer and all outside of it.
constexpr LayerMask layers_down_to(Layer layer) {
  return static_cast<LayerMask>((layer_bit(layer) << 1) - 1);
}

}  // namespace treadle::python
