// The flow of gradients through views and through in-place changes of views. Every view is an
// as_strided of its base, whatever chain of operators made it. Where only one of the two is
// complex, the as_strided is over the real numbers that make up the complex ones.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/view.h"

#include <algorithm>

#include "aten/ops/as_strided.h"
#include "aten/ops/as_strided_backward.h"
#include "aten/ops/clone.h"
#include "aten/ops/conj.h"
#include "aten/ops/copy_.h"
#include "aten/ops/fill_.h"
#include "aten/ops/neg.h"
#include "aten/ops/resolve_conj.h"
#include "aten/ops/view_as_complex.h"
#include "aten/ops/view_as_real.h"
#include "autograd/alias.h"
#include "autograd/as_strided_node.h"
#include "autograd/graph/visit.h"

namespace treadle::autograd {
namespace {

struct Geometry {
  DimVector sizes, strides;
  int64_t offset = 0;
  explicit Geometry(const Tensor& t)
      : sizes(t.sizes()), strides(t.strides()), offset(t.storage_offset()) {}
  // The same as of real numbers, two for each complex one.
  Geometry as_real() const {
    Geometry real = *this;
    for (int64_t& stride : real.strides) stride *= 2;
    real.sizes.push_back(2);
    real.strides.push_back(1);
    real.offset *= 2;
    return real;
  }
};

// The step from the values of a base to those of its view at the same positions: conjugation and
// negation. It is its own inverse, and that of gradients too.
class Turn {
 public:
  Turn(const Tensor& base, const Tensor& view)
      : conjugated_(base.impl()->is_conj() != view.impl()->is_conj()),
        negated_(base.impl()->is_neg() != view.impl()->is_neg()) {}
  Tensor operator()(Tensor t) const {
    if (conjugated_) t = aten::conj(t);
    return negated_ ? aten::neg(t) : t;
  }

 private:
  bool conjugated_, negated_;
};

// The part of a base that its view shows.
class Window {
 public:
  Window(const Tensor& base, const Tensor& view)
      : base_(base),
        view_(view),
        turn_(base, view),
        splits_(is_complex(base.dtype()) && !is_complex(view.dtype())),
        joins_(is_complex(view.dtype()) && !is_complex(base.dtype())) {
    if (splits_) base_ = base_.as_real();
    if (joins_) view_ = view_.as_real();
  }
  // The gradient of the base that one of the view is.
  Tensor gradient_of_base(const Tensor& of_view) const {
    Tensor grad = turn_(of_view);
    if (joins_) grad = aten::view_as_real(aten::resolve_conj(grad));
    grad = aten::as_strided_backward(grad, base_.sizes, base_.strides, view_.sizes, view_.strides,
                                     view_.offset - base_.offset);
    return splits_ ? aten::view_as_complex(grad) : grad;
  }
  // The part of `whole`, which lies in memory as the base does, that the view shows.
  Tensor slice(const Tensor& whole) const {
    const Tensor numbers = splits_ ? aten::view_as_real(whole) : whole;
    const Tensor part =
        aten::as_strided(numbers, view_.sizes, view_.strides, view_.offset - base_.offset);
    return joins_ ? aten::view_as_complex(part) : part;
  }
  Tensor turn(Tensor t) const { return turn_(std::move(t)); }

 private:
  Geometry base_, view_;
  Turn turn_;
  bool splits_, joins_;  // a view of the numbers of complex elements; complex ones of real elements
};

// Whether the history of a base can be derived from a view of it.
bool is_told_by(const Tensor& base, const Tensor& view) {
  if (view.dtype() == base.dtype()) return true;
  const bool is_split = is_complex(base.dtype()) && to_real(base.dtype()) == view.dtype();
  const bool is_joined = is_complex(view.dtype()) && to_real(view.dtype()) == base.dtype();
  return (is_split && !base.impl()->is_conj()) || is_joined;
}

bool any_negative(IntList strides) {
  return std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s < 0; });
}

class AsStridedBackward final : public Node {
 public:
  AsStridedBackward(const Tensor& base, const Tensor& view) : window_(base, view) {
    add_edge(gradient_edge(base));
  }
  Grads apply(Grads&& grads) override {
    if (!grads[0].defined() || !should_compute(0)) return Grads(1);
    return {window_.gradient_of_base(grads[0])};
  }
  std::string name() const override { return "AsStridedBackward0"; }

 private:
  Window window_;
};

class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, NodePtr node, size_t self)
      : base_(base), window_(base, view), self_(self), node_(std::move(node)) {
    add_edge(gradient_edge(base));
    for (size_t i = 0; i < node_->num_outputs(); ++i) {
      if (i != self_) add_edge(node_->edge(i));
    }
  }

  Grads apply(Grads&& grads) override {
    Grads out(num_outputs());
    if (!grads[0].defined()) return out;
    const NodePtr node = inner();
    check<ErrorKind::Runtime>(
        static_cast<bool>(node), OpName("CopySlices"),
        "Trying to backward through the graph a second time, but what it "
        "saved was freed by the first; pass retain_graph=True to the first backward");
    const Tensor whole =
        empty_strided_tensor(base_.sizes, base_.strides, grads[0].dtype(), grads[0].device());
    aten::copy_(whole, grads[0]);
    grads[0].reset();
    const Tensor slice = window_.slice(whole);
    Grads inner = apply_inner(*node, aten::clone(window_.turn(slice)));
    for (size_t i = 0, at = 1; i < inner.size() && at < out.size(); ++i) {
      if (i == self_) continue;
      if (should_compute(at)) out[at] = std::move(inner[i]);
      ++at;
    }
    if (should_compute(0)) {
      if (self_ < inner.size() && inner[self_].defined())
        aten::copy_(slice, window_.turn(inner[self_]));
      else
        aten::fill_(slice, 0);
      out[0] = whole;
    }
    return out;
  }
  std::string name() const override { return "CopySlices"; }
  // It does as the operator that changed the view does, because these are that operator's
  // gradients.
  bool broadcasts() const override { return true; }
  // If the operator saved its result, its node may be in a graph itself, as the grad_fn of that
  // result. Then its saved values are released in its own turn.
  void release_saved() override {
    NodePtr node;
    const std::lock_guard lock(lock_);
    std::swap(node, node_);  // destroyed after the lock is open
  }
  void visit_held(OwnedWalk& walk) const override { walk.node(node_); }

 private:
  NodePtr inner() const {
    const std::lock_guard lock(lock_);
    return node_;
  }
  // The operator's node asks for its own edges which gradients are wanted.
  Grads apply_inner(Node& node, Tensor grad) {
    std::vector<uint8_t> wanted(node.num_outputs() + 1, 1);
    for (size_t i = 0, at = 1; i < node.num_outputs(); ++i)
      wanted[i] = should_compute(i == self_ ? 0 : at++);
    const uint8_t* const outer = std::exchange(Node::wanted_edges(), wanted.data());
    try {
      Grads grads = node.apply({std::move(grad)});
      Node::wanted_edges() = outer;
      return grads;
    } catch (...) {
      Node::wanted_edges() = outer;
      throw;
    }
  }

  Geometry base_;
  Window window_;
  size_t self_;  // which edge of the node is the view's
  NodePtr node_;
  mutable SpinLock lock_;
};

// The reason why the view may not be changed in place (or be used after its base was), or null.
const char* forbidden(ViewCreation creation) {
  switch (creation) {
    case ViewCreation::Normal:
      return nullptr;
    case ViewCreation::NoGrad:
      return "A view was created in no_grad mode and is being modified inplace with grad mode "
             "enabled; do both inside the "
             "no_grad block or both outside";
    case ViewCreation::Inference:
      return "A view was created in inference mode and is being modified inplace in normal mode; "
             "do "
             "both inside the inference_mode block or both outside";
    case ViewCreation::MultiOutput:
      return "This view is the output of a function that returns multiple views; such functions do "
             "not allow the output views "
             "to be modified inplace; replace the inplace operation by an out-of-place one";
    case ViewCreation::CustomFunction:
      return "This view was created inside a custom Function (or because an input was returned "
             "as-is), where its gradient may "
             "be custom; replace the inplace operation by an out-of-place one, or return a clone";
  }
  return nullptr;
}

}  // namespace

namespace {

ViewCreation mode_of_creation() {
  if (inference_enabled()) return ViewCreation::Inference;
  return grad_enabled() ? ViewCreation::Normal : ViewCreation::NoGrad;
}

}  // namespace

Tensor as_view(const Tensor& self, Tensor view, ViewCreation creation) {
  // A view operator that had nothing to do.
  if (view.is_same(self)) view = alias_without_history(self);
  if (self.impl()->is_inference()) return view;
  if (creation == ViewCreation::Normal) creation = mode_of_creation();
  Tensor base = self;
  if (const ViewMeta* parent = view_of(self)) {
    base = parent->base;
    if (creation == ViewCreation::Normal) creation = parent->creation;
  }
  const AutogradMeta* base_meta = meta_of(base);
  const uint32_t history = base_meta ? base_meta->history.load() : 0;
  TensorImpl* impl = view.impl();
  impl->set_autograd_meta(std::make_unique<ViewMeta>(std::move(base), creation, history));
  impl->set_layer(Layer::Autograd, true);
  return view;
}

std::vector<Tensor> as_views(const Tensor& self, std::vector<Tensor> views) {
  const ViewCreation mode = mode_of_creation();
  const ViewCreation creation = mode == ViewCreation::Normal ? ViewCreation::MultiOutput : mode;
  for (Tensor& view : views) {
    // Already a view where it was composed of other view operators.
    if (ViewMeta* meta = view_of(view))
      meta->creation = creation;
    else
      view = as_view(self, std::move(view), creation);
  }
  return views;
}

NodePtr view_node(const Tensor& t, const ViewMeta& view) {
  if (const char* why = forbidden(view.creation)) {
    fail<ErrorKind::Runtime>(
        "a view whose base or another view of it was modified inplace cannot be used any more: ",
        why);
  }
  check<ErrorKind::NotImplemented>(
      is_told_by(view.base, t), "a view of another dtype than its base (", t.dtype(), " of ",
      view.base.dtype(),
      ") cannot be used after the base was modified inplace; make the view again");
  return as_strided_node(view.base, t);
}

NodePtr as_strided_node(const Tensor& base, const Tensor& view) {
  return make_intrusive<AsStridedBackward>(base, view);
}

NodePtr copy_slices(const Tensor& base, const Tensor& view, NodePtr node, size_t self) {
  return make_intrusive<CopySlices>(base, view, std::move(node), self);
}

void require_mode(const char* op, const Tensor& written) {
  check<ErrorKind::Runtime>(
      !written.defined() || !written.impl()->is_inference() || inference_enabled(), OpName(op),
      "inplace update to an inference tensor outside inference mode is not allowed; make a "
      "normal tensor with clone() first");
}

void check_in_place(const char* op, const Tensor& self, bool recorded) {
  require_mode(op, self);
  const ViewMeta* view = view_of(self);
  // A view whose base requires grad is part of its history, whether it requires grad itself or was
  // made where nothing is recorded, or before the base came to require it.
  if (!recorded && !(view && grad_enabled() && !inference_enabled() && view->base.requires_grad()))
    return;
  if (view) {
    if (const char* why = forbidden(view->creation)) fail<ErrorKind::Runtime>(OpName(op), why);
    check<ErrorKind::NotImplemented>(
        is_told_by(view->base, self) && !any_negative(view->base.strides()), OpName(op),
        "a view of another dtype than its base, or of a base with negative strides, cannot be "
        "modified inplace while gradients are recorded; use an out-of-place operation");
    check<ErrorKind::Runtime>(
        !(view->base.requires_grad() && is_leaf(view->base)), OpName(op),
        "a view of a leaf Variable that requires grad is being used in an in-place operation");
  }
  check<ErrorKind::Runtime>(
      !(self.requires_grad() && is_leaf(self)), OpName(op),
      "a leaf Variable that requires grad is being used in an in-place operation");
}

void reject_out(const char* op) {
  fail<ErrorKind::Runtime>(
      OpName(op),
      "functions with out=... arguments don't support automatic differentiation, but one of the "
      "arguments requires grad");
}

}  // namespace treadle::autograd
