// The autograd metadata of a tensor: its gradient, the node that made it, and, for a view, its
// base.
//
//   set_requires_grad(w, true);
//   Tensor y = aten::mul(w, x);
//   grad_fn(y)->name() == "MulBackward0";
//   is_leaf(w);
//   gradient_edge(w);    // goes to the node that fills w.grad
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "autograd/graph/node.h"
#include "core/tensor/tensor.h"

namespace treadle::autograd {

struct ViewMeta;

// Hooks of a leaf live here, because the node that accumulates its gradient is made and freed
// repeatedly.
struct LeafHooks {
  HookList<TensorHook> tensor;
  HookList<std::function<void(const Tensor&)>> post_accumulate;
};

struct AutogradMeta : AutogradMetaBase {
  ~AutogradMeta() override;
  bool requires_grad() const override { return leaf_requires_grad || has_maker; }
  bool is_recorded_leaf() const override { return leaf_requires_grad && !has_maker; }
  virtual ViewMeta* view() { return nullptr; }
  // Under `lock`, or while no other thread knows the tensor.
  void set_maker(NodePtr node, uint32_t nr) {
    has_maker.store(static_cast<bool>(node), std::memory_order_relaxed);
    grad_fn = std::move(node);
    output_nr = nr;
  }

  Tensor grad;                       // under `lock`: see grad_of(), set_grad()
  NodePtr grad_fn;                   // under `lock`; of a view: may be out of date, see grad_fn(t)
  Node* grad_accumulator = nullptr;  // not owned; under `lock`
  MadeOnce<LeafHooks> hooks;
  uint32_t output_nr = 0;              // which output of grad_fn; under `lock`
  std::atomic<bool> has_maker{false};  // whether there is a grad_fn; read without `lock`
  // The number of in-place changes by operators that rebased the tensor's history.
  std::atomic<uint32_t> history{0};
  std::atomic<bool> leaf_requires_grad{false};
  std::atomic<bool> retains_grad{false};
  // Other threads may go backward through the tensor, or read its gradient, at any time.
  mutable SpinLock lock;
};

// The origin of a view, which decides whether it may be changed in place.
enum class ViewCreation : uint8_t { Normal, NoGrad, Inference, MultiOutput, CustomFunction };

struct ViewMeta final : AutogradMeta {
  ViewMeta(Tensor base, ViewCreation creation, uint32_t base_history)
      : base(std::move(base)), creation(creation), base_history(base_history) {}
  bool requires_grad() const override;
  ViewMeta* view() override { return this; }
  // Whether the base's history was rebased after grad_fn was made, so that grad_fn is out of date.
  bool stale() const;

  Tensor base;  // never a view itself
  ViewCreation creation;
  std::atomic<uint32_t> base_history;
};

// Null when the tensor has none.
inline AutogradMeta* meta_of(const Tensor& t) {
  return t.defined() ? static_cast<AutogradMeta*>(t.impl()->autograd_meta()) : nullptr;
}
inline ViewMeta* view_of(const Tensor& t) {
  AutogradMeta* meta = meta_of(t);
  return meta ? meta->view() : nullptr;
}
AutogradMeta& ensure_meta(const Tensor& t);

inline bool requires_grad(const Tensor& t) { return t.requires_grad(); }
inline bool requires_grad(TensorList list) {
  for (const Tensor& t : list)
    if (t.requires_grad()) return true;
  return false;
}
// Whether a call with these arguments is to be recorded.
template <class... Tensors>
bool records(const Tensors&... tensors) {
  return grad_enabled() && !inference_enabled() && (requires_grad(tensors) || ...);
}

// The node that made `t`, null for a leaf. A view whose base was changed in place gets a new node
// first.
NodePtr grad_fn(const Tensor& t);
inline bool is_leaf(const Tensor& t) { return !meta_of(t) || !grad_fn(t); }
// The destination of the gradient of `t`: its node, the node that accumulates a leaf's gradient, or
// none.
Edge gradient_edge(const Tensor& t);

// RuntimeError for a dtype without gradients and for a non-leaf.
void set_requires_grad(const Tensor& t, bool value);
// Keeps .grad of a non-leaf. RuntimeError when `t` does not require grad.
void retain_grad(const Tensor& t);
Tensor grad_of(const Tensor& t);
// Checks shape, dtype and device. An undefined tensor clears the gradient.
void set_grad(const Tensor& t, const Tensor& grad);
// Detaches `t` from its history, in place. RuntimeError for a view.
void detach_in_place(const Tensor& t);
// The base of the view `t`, or undefined.
inline Tensor base_of(const Tensor& t) { return view_of(t) ? view_of(t)->base : Tensor(); }

// The hook runs when the gradient of `t` is known, and may replace it. RuntimeError when `t` does
// not require grad. `held` is the object that the hook keeps alive, if any: see visit.h.
HookId add_hook(const Tensor& t, TensorHook hook, void* held = nullptr);
// The hook runs after the gradient of the leaf `t` was added to its .grad.
HookId add_post_accumulate_hook(const Tensor& t, std::function<void(const Tensor&)> hook,
                                void* held = nullptr);
void remove_hook(const Tensor& t, HookId id);

// Makes `node` the grad_fn of `output`, a new tensor. Undefined outputs, and those of a dtype
// without gradients, get an input index whose gradient never comes.
void set_history(const Tensor& output, NodePtr node);
void set_history(TensorList outputs, const NodePtr& node);
// One edge for each argument.
void add_edges(Node& node, const Tensor& t);
void add_edges(Node& node, TensorList list);

// Whether gradients exist for the dtype.
inline bool is_differentiable(ScalarType t) { return is_floating(t) || is_complex(t); }

// Sets the layer bit of `t` from its meta. The bit is on when the tensor requires grad, is a view
// (whose base may come to require it), or was made in inference mode (its in-place changes are
// checked).
void update_layer(const Tensor& t);

}  // namespace treadle::autograd
