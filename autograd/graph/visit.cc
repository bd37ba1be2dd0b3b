// The traversal of all that a tensor alone keeps alive.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph/visit.h"

#include "autograd/meta.h"
#include "autograd/saved_visitor.h"
#include "core/tensor/layout_tensor.h"

namespace treadle::autograd {
namespace {

// Looks at the slots of a generated node, and at no value.
class Slots final : public SavedVisitor {
 public:
  explicit Slots(OwnedWalk& walk) : walk_(walk) {}
  bool wants(const char*) override { return false; }
  void take(Value) override {}
  void pass(const SavedTensor& saved) override { walk_.saved(saved); }
  void pass(const SavedTensorList& saved) override { walk_.saved(saved); }

 private:
  OwnedWalk& walk_;
};

}  // namespace

void OwnedWalk::tensor(const Tensor& t) {
  if (!t.defined() || t.impl()->use_count() != 1) return;
  visitor_.tensor(t);
  if (const AutogradMeta* meta = meta_of(t)) metas_.push_back(meta);
  parts(t);
}

void OwnedWalk::parts(const Tensor& t) {
  if (t.is_strided()) return;
  const auto contents = contents_of(t);
  constexpr int64_t kOwners = 2;  // the tensor, and this function
  if (contents.use_count() != kOwners) return;
  for (const Tensor& part : contents->parts) tensor(part);
}

void OwnedWalk::saved(const SavedTensor& saved) { saved.visit(*this); }
void OwnedWalk::saved(const SavedTensorList& saved) { saved.visit(*this); }

void OwnedWalk::expand(const AutogradMeta& meta) {
  node(meta.grad_fn);
  tensor(meta.grad);
  if (const ViewMeta* view = const_cast<AutogradMeta&>(meta).view()) tensor(view->base);
  if (const LeafHooks* leaf = meta.hooks.get()) {
    hooks(leaf->tensor);
    hooks(leaf->post_accumulate);
  }
}

void OwnedWalk::expand(const Node& n) {
  for (const Edge& edge : n.edges()) node(edge.node);
  if (const NodeHooks* all = n.hooks()) {
    hooks(all->tensor);
    hooks(all->retains_grad);
    hooks(all->pre);
    hooks(all->post);
    if (all->notes) kept(all->notes);
  }
  n.visit_held(*this);
  Slots slots(*this);
  n.show_saved(slots);
}

void OwnedWalk::go() {
  constexpr int kMax = 2000;  // at every result of a long graph
  for (int i = 0; i < kMax && !(nodes_.empty() && metas_.empty()); ++i) {
    if (!nodes_.empty()) {
      const Node* node = nodes_.back();
      nodes_.pop_back();
      expand(*node);
    } else {
      const AutogradMeta* next = metas_.back();
      metas_.pop_back();
      expand(*next);
    }
  }
}

void visit_owned(const Tensor& t, OwnedVisitor& visitor) {
  const AutogradMeta* meta = meta_of(t);
  if (!meta && t.is_strided()) return;
  OwnedWalk walk(visitor);
  if (meta) walk.expand(*meta);
  walk.parts(t);
  walk.go();
}

void visit_owned(const Node& node, OwnedVisitor& visitor) {
  OwnedWalk walk(visitor);
  walk.expand(node);
  walk.go();
}

void clear_owned(const Tensor& t) {
  t.impl()->set_autograd_meta(nullptr);
  update_layer(t);
}

}  // namespace treadle::autograd
