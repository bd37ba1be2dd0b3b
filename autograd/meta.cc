// Reads and changes the autograd metadata of a tensor.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/meta.h"

#include "autograd/graph/accumulate_grad.h"
#include "autograd/view.h"
#include "core/tensor/layout_tensor.h"
#include "core/tensor/weak_tensor.h"

namespace treadle::autograd {
namespace {

// The hook behind retain_grad(): it must not keep the tensor alive.
void install_retain_hook(const Tensor& t, AutogradMeta& meta, const Edge& maker) {
  if (!meta.weak) meta.weak = std::make_shared<WeakTensor>(t.impl());
  auto store = [weak = meta.weak](const Tensor& grad) {
    if (!grad.defined()) return Tensor();
    if (const Tensor self = weak->lock(); self.defined()) accumulate_into(self, grad);
    return Tensor();
  };
  maker.node->ensure_hooks().retains_grad.add(next_hook_id(), std::move(store), nullptr,
                                              maker.input_nr);
}

void remove_retain_hook(const Edge& maker) {
  if (!maker.valid() || !maker.node->hooks()) return;
  maker.node->hooks()->retains_grad.remove_if(
      [&](const HookList<TensorHook>::Entry& e) { return e.input_nr == maker.input_nr; });
}

// The edge to the node that made the tensor, as the meta says it now.
Edge maker_in(const AutogradMeta& meta) {
  const std::lock_guard lock(meta.lock);
  return {meta.grad_fn, meta.output_nr};
}

// Installs `maker`, unless `still` reports, under the lock, that it is no longer wanted.
template <class Still>
void set_maker(const Tensor& t, AutogradMeta& meta, Edge maker, Still&& still) {
  {
    const std::lock_guard lock(meta.lock);
    if (!still()) return;
    Edge before{std::move(meta.grad_fn), meta.output_nr};
    meta.set_maker(std::move(maker.node), maker.input_nr);
    maker = std::move(before);  // destroyed after the lock is released
  }
  if (!meta.retains_grad) return;
  remove_retain_hook(maker);
  if (const Edge now = maker_in(meta); now.valid()) install_retain_hook(t, meta, now);
}
void set_maker(const Tensor& t, AutogradMeta& meta, Edge maker) {
  set_maker(t, meta, std::move(maker), [] { return true; });
}

// The base was changed in place, so the view gets a new node, which takes its gradient to the base.
void renew(const Tensor& t, ViewMeta& view) {
  const uint32_t history = meta_of(view.base)->history;
  NodePtr node = view_node(t, view);
  const uint32_t nr = node->add_input(t);
  set_maker(t, view, {std::move(node), nr}, [&] {
    // Another thread may have been faster.
    return view.base_history.exchange(history) != history;
  });
}

// The node that made `t`, brought up to date, and which of its outputs `t` is.
Edge maker_of(const Tensor& t, AutogradMeta& meta) {
  if (ViewMeta* view = meta.view(); view && view->stale() && view->base.requires_grad())
    renew(t, *view);
  return maker_in(meta);
}

}  // namespace

AutogradMeta::~AutogradMeta() {
  if (retains_grad) remove_retain_hook({grad_fn, output_nr});
}

bool ViewMeta::stale() const {
  const AutogradMeta* meta = meta_of(base);
  return meta && meta->history != base_history;
}

bool ViewMeta::requires_grad() const {
  return AutogradMeta::requires_grad() || (stale() && base.requires_grad());
}

AutogradMeta& ensure_meta(const Tensor& t) {
  if (AutogradMeta* meta = meta_of(t)) return *meta;
  auto made = std::make_unique<AutogradMeta>();
  AutogradMeta& meta = *made;
  t.impl()->set_autograd_meta(std::move(made));
  return meta;
}

void update_layer(const Tensor& t) {
  const AutogradMeta* meta = meta_of(t);
  t.impl()->set_layer(Layer::Autograd,
                      t.impl()->is_inference() || (meta && (meta->requires_grad() || view_of(t))));
}

NodePtr grad_fn(const Tensor& t) {
  AutogradMeta* meta = meta_of(t);
  return meta ? maker_of(t, *meta).node : nullptr;
}

Edge gradient_edge(const Tensor& t) {
  AutogradMeta* meta = meta_of(t);
  if (!meta) return {};
  Edge edge = maker_of(t, *meta);
  if (!edge.valid() && meta->leaf_requires_grad) return {grad_accumulator(t), 0};
  return edge;
}

void set_requires_grad(const Tensor& t, bool value) {
  if (!t.is_strided()) return set_requires_grad(values_of(t), value);
  if (t.requires_grad() == value) return;
  check<ErrorKind::Runtime>(
      is_leaf(t), OpName("requires_grad_"),
      "you can only change requires_grad flags of leaf variables",
      value ? "" : "; to use a computed variable without its gradient, call detach()");
  if (value) {
    check<ErrorKind::Runtime>(is_differentiable(t.dtype()), OpName("requires_grad_"),
                              "only Tensors of floating point and complex dtype "
                              "can require gradients, got ",
                              t.dtype());
    check<ErrorKind::Runtime>(!t.impl()->is_inference() || inference_enabled(),
                              OpName("requires_grad_"),
                              "setting requires_grad=True on an inference tensor "
                              "outside inference mode is not "
                              "allowed; make a normal tensor with clone() first");
  }
  ensure_meta(t).leaf_requires_grad = value;
  update_layer(t);
}

void retain_grad(const Tensor& t) {
  check<ErrorKind::Runtime>(t.requires_grad(), OpName("retain_grad"),
                            "can't retain_grad on a Tensor that has requires_grad=False");
  if (is_leaf(t)) return;
  AutogradMeta& meta = ensure_meta(t);
  if (meta.retains_grad) return;
  meta.retains_grad = true;
  install_retain_hook(t, meta, maker_in(meta));
}

Tensor grad_of(const Tensor& t) {
  const AutogradMeta* meta = meta_of(t);
  if (!meta) return Tensor();
  const std::lock_guard lock(meta->lock);
  return meta->grad;
}

void set_grad(const Tensor& t, const Tensor& grad) {
  const auto put = [](AutogradMeta& meta, Tensor value) {
    const std::lock_guard lock(meta.lock);
    std::swap(meta.grad, value);  // the old one is destroyed after the lock is released
  };
  if (!grad.defined()) {
    if (AutogradMeta* meta = meta_of(t)) put(*meta, Tensor());
    return;
  }
  check<ErrorKind::Runtime>(!grad.is_same(t), OpName("grad"),
                            "can't assign a Tensor as its own gradient");
  check<ErrorKind::Runtime>(grad.sizes() == t.sizes(), OpName("grad"),
                            "expected a gradient of shape ", t.sizes(), ", got ", grad.sizes());
  check<ErrorKind::Runtime>(grad.dtype() == t.dtype(), OpName("grad"),
                            "expected a gradient of dtype ", t.dtype(), ", got ", grad.dtype());
  check<ErrorKind::Runtime>(grad.device() == t.device(), OpName("grad"),
                            "expected a gradient on device ", t.device(), ", got ", grad.device());
  put(ensure_meta(t), grad);
}

void detach_in_place(const Tensor& t) {
  AutogradMeta* meta = meta_of(t);
  if (!meta) return;
  check<ErrorKind::Runtime>(!meta->view(), OpName("detach_"),
                            "can't detach views in-place; use detach() instead, or "
                            "detach() and then view again");
  set_maker(t, *meta, {});
  meta->retains_grad = false;
  meta->leaf_requires_grad = false;
  update_layer(t);
}

HookId add_hook(const Tensor& t, TensorHook hook, void* held) {
  check<ErrorKind::Runtime>(t.requires_grad(), OpName("register_hook"),
                            "cannot register a hook on a tensor that doesn't require gradient");
  AutogradMeta& meta = ensure_meta(t);
  if (const Edge maker = maker_of(t, meta); maker.valid())
    return maker.node->add_tensor_hook(maker.input_nr, std::move(hook), held);
  const HookId id = next_hook_id();
  meta.hooks.ensure().tensor.add(id, std::move(hook), held);
  return id;
}

HookId add_post_accumulate_hook(const Tensor& t, std::function<void(const Tensor&)> hook,
                                void* held) {
  check<ErrorKind::Runtime>(t.requires_grad() && is_leaf(t),
                            OpName("register_post_accumulate_grad_hook"),
                            "expected a leaf that requires gradient");
  const HookId id = next_hook_id();
  ensure_meta(t).hooks.ensure().post_accumulate.add(id, std::move(hook), held);
  return id;
}

void remove_hook(const Tensor& t, HookId id) {
  AutogradMeta* meta = meta_of(t);
  if (!meta) return;
  LeafHooks* leaf = meta->hooks.get();
  if (leaf && (leaf->tensor.remove(id) || leaf->post_accumulate.remove(id))) return;
  if (const Edge maker = maker_in(*meta); maker.valid()) maker.node->remove_hook(id);
}

void set_history(const Tensor& output, NodePtr node) {
  // A view of an inference tensor is one itself, and in no graph.
  if (!output.defined() || !is_differentiable(output.dtype()) || output.impl()->is_inference()) {
    node->add_undefined_input();
    return;
  }
  const uint32_t nr = node->add_input(output);
  AutogradMeta* meta = meta_of(output);
  if (meta)
    check_internal(!meta->requires_grad(),
                   "an operator returned one of its arguments as a new tensor");
  else
    meta = &ensure_meta(output);
  // No other thread knows the tensor yet.
  meta->set_maker(std::move(node), nr);
  output.impl()->set_layer(Layer::Autograd, true);
}

void set_history(TensorList outputs, const NodePtr& node) {
  for (const Tensor& output : outputs) set_history(output, node);
}

void add_edges(Node& node, const Tensor& t) { node.add_edge(gradient_edge(t)); }

void add_edges(Node& node, TensorList list) {
  for (const Tensor& t : list) node.add_edge(gradient_edge(t));
}

void rebase_history(const Tensor& self, NodePtr node, size_t edge) {
  const uint32_t nr = node->add_input(self);
  AutogradMeta& meta = ensure_meta(self);
  if (ViewMeta* view = meta.view()) {
    // The base's history takes in the change. The view's own node is made from the base at its next
    // use.
    const Tensor base = view->base;
    NodePtr slices = copy_slices(base, self, std::move(node), edge);
    AutogradMeta& base_meta = ensure_meta(base);
    const uint32_t base_nr = slices->add_input(base);
    set_maker(base, base_meta, {std::move(slices), base_nr});
    ++base_meta.history;
    update_layer(base);
  } else {
    set_maker(self, meta, {std::move(node), nr});
    ++meta.history;
  }
  update_layer(self);
}

}  // namespace treadle::autograd
