// Reading and changing what autograd keeps for a tensor.
#include "autograd/meta.h"

#include "autograd/accumulate_grad.h"
#include "autograd/view.h"
#include "core/weak_tensor.h"

namespace treadle::autograd {
namespace {

// The hook behind retain_grad(): it must not keep the tensor alive.
void install_retain_hook(const Tensor& t, AutogradMeta& meta) {
  if (!meta.weak) meta.weak = std::make_shared<WeakTensor>(t.impl());
  auto store = [weak = meta.weak](const Tensor& grad) {
    if (!grad.defined()) return Tensor();
    if (const Tensor self = weak->lock(); self.defined()) accumulate_into(self, grad);
    return Tensor();
  };
  meta.grad_fn->ensure_hooks().retains_grad.push_back(
      {meta.output_nr, next_hook_id(), std::make_shared<TensorHook>(std::move(store))});
}

void remove_retain_hook(AutogradMeta& meta) {
  if (!meta.grad_fn || !meta.grad_fn->hooks()) return;
  std::erase_if(meta.grad_fn->hooks()->retains_grad,
                [&](const NodeHooks::OnTensor& h) { return h.input_nr == meta.output_nr; });
}

void set_grad_fn(const Tensor& t, AutogradMeta& meta, NodePtr node, uint32_t output_nr) {
  if (meta.retains_grad) remove_retain_hook(meta);
  meta.grad_fn = std::move(node);
  meta.output_nr = output_nr;
  if (meta.retains_grad && meta.grad_fn) install_retain_hook(t, meta);
}

}  // namespace

AutogradMeta::~AutogradMeta() {
  if (retains_grad) remove_retain_hook(*this);
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
  if (!meta) return nullptr;
  if (ViewMeta* view = meta->view(); view && view->stale() && view->base.requires_grad()) {
    NodePtr node = view_node(t, *view);
    const uint32_t nr = node->add_input(t);
    set_grad_fn(t, *meta, std::move(node), nr);
    view->base_history = meta_of(view->base)->history;
  }
  return meta->grad_fn;
}

Edge gradient_edge(const Tensor& t) {
  AutogradMeta* meta = meta_of(t);
  if (!meta) return {};
  // grad_fn() only differs from the field for a view.
  if (meta->view()) grad_fn(t);
  if (meta->grad_fn) return {meta->grad_fn, meta->output_nr};
  if (meta->leaf_requires_grad) return {grad_accumulator(t), 0};
  return {};
}

void set_requires_grad(const Tensor& t, bool value) {
  if (t.requires_grad() == value) return;
  check<ErrorKind::Runtime>(
      is_leaf(t), "requires_grad_: you can only change requires_grad flags of leaf variables",
      value ? "" : "; to use a computed variable without its gradient, call detach()");
  if (value) {
    check<ErrorKind::Runtime>(is_differentiable(t.dtype()),
                              "requires_grad_: only Tensors of floating point and complex dtype "
                              "can require gradients, got ",
                              t.dtype());
    check<ErrorKind::Runtime>(!t.impl()->is_inference() || inference_enabled(),
                              "requires_grad_: setting requires_grad=True on an inference tensor "
                              "outside inference mode is not "
                              "allowed; make a normal tensor with clone() first");
  }
  ensure_meta(t).leaf_requires_grad = value;
  update_layer(t);
}

void retain_grad(const Tensor& t) {
  check<ErrorKind::Runtime>(
      t.requires_grad(), "retain_grad: can't retain_grad on a Tensor that has requires_grad=False");
  if (is_leaf(t)) return;
  AutogradMeta& meta = ensure_meta(t);
  if (meta.retains_grad) return;
  meta.retains_grad = true;
  install_retain_hook(t, meta);
}

void set_grad(const Tensor& t, const Tensor& grad) {
  if (!grad.defined()) {
    if (AutogradMeta* meta = meta_of(t)) meta->grad.reset();
    return;
  }
  check<ErrorKind::Runtime>(!grad.is_same(t), "grad: can't assign a Tensor as its own gradient");
  check<ErrorKind::Runtime>(grad.sizes() == t.sizes(), "grad: expected a gradient of shape ",
                            t.sizes(), ", got ", grad.sizes());
  check<ErrorKind::Runtime>(grad.dtype() == t.dtype(), "grad: expected a gradient of dtype ",
                            t.dtype(), ", got ", grad.dtype());
  check<ErrorKind::Runtime>(grad.device() == t.device(), "grad: expected a gradient on device ",
                            t.device(), ", got ", grad.device());
  ensure_meta(t).grad = grad;
}

void detach_in_place(const Tensor& t) {
  AutogradMeta* meta = meta_of(t);
  if (!meta) return;
  check<ErrorKind::Runtime>(!meta->view(),
                            "detach_: can't detach views in-place; use detach() instead, or "
                            "detach() and then view again");
  set_grad_fn(t, *meta, nullptr, 0);
  meta->retains_grad = false;
  meta->leaf_requires_grad = false;
  update_layer(t);
}

HookId add_hook(const Tensor& t, TensorHook hook) {
  check<ErrorKind::Runtime>(
      t.requires_grad(),
      "register_hook: cannot register a hook on a tensor that doesn't require gradient");
  if (const NodePtr node = grad_fn(t))
    return node->add_tensor_hook(meta_of(t)->output_nr, std::move(hook));
  AutogradMeta& meta = ensure_meta(t);
  if (!meta.hooks) meta.hooks = std::make_unique<LeafHooks>();
  return meta.hooks->tensor.add(next_hook_id(), std::move(hook));
}

HookId add_post_accumulate_hook(const Tensor& t, std::function<void(const Tensor&)> hook) {
  check<ErrorKind::Runtime>(
      t.requires_grad() && is_leaf(t),
      "register_post_accumulate_grad_hook: expected a leaf that requires gradient");
  AutogradMeta& meta = ensure_meta(t);
  if (!meta.hooks) meta.hooks = std::make_unique<LeafHooks>();
  return meta.hooks->post_accumulate.add(next_hook_id(), std::move(hook));
}

void remove_hook(const Tensor& t, HookId id) {
  AutogradMeta* meta = meta_of(t);
  if (!meta) return;
  if (meta->hooks && (meta->hooks->tensor.remove(id) || meta->hooks->post_accumulate.remove(id)))
    return;
  if (meta->grad_fn) meta->grad_fn->remove_hook(id);
}

void set_history(const Tensor& output, const NodePtr& node) {
  if (!output.defined() || !is_differentiable(output.dtype())) {
    node->add_undefined_input();
    return;
  }
  const uint32_t nr = node->add_input(output);
  AutogradMeta& meta = ensure_meta(output);
  check_internal(!meta.requires_grad(),
                 "an operator returned one of its arguments as a new tensor");
  set_grad_fn(output, meta, node, nr);
  output.impl()->set_layer(Layer::Autograd, true);
}

void set_history(TensorList outputs, const NodePtr& node) {
  for (const Tensor& output : outputs) set_history(output, node);
}

void add_edges(Node& node, const Tensor& t) { node.add_edge(gradient_edge(t)); }

void add_edges(Node& node, TensorList list) {
  for (const Tensor& t : list) node.add_edge(gradient_edge(t));
}

void rebase_history(const Tensor& self, NodePtr node) {
  const uint32_t nr = node->add_input(self);
  AutogradMeta& meta = ensure_meta(self);
  if (ViewMeta* view = meta.view()) {
    // The base takes in the change; the view's own node is made from the base when it is asked for.
    const Tensor base = view->base;
    NodePtr slices = copy_slices(base, self, std::move(node));
    AutogradMeta& base_meta = ensure_meta(base);
    const uint32_t base_nr = slices->add_input(base);
    set_grad_fn(base, base_meta, std::move(slices), base_nr);
    ++base_meta.history;
    update_layer(base);
  } else {
    set_grad_fn(self, meta, std::move(node), nr);
    ++meta.history;
  }
  update_layer(self);
}

}  // namespace treadle::autograd
