// Accumulates gradients at leaves.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph/accumulate_grad.h"

#include <array>
#include <mutex>

#include "aten/engine/strides/view_shapes.h"
#include "aten/ops/add.h"
#include "aten/ops/clone.h"
#include "aten/ops/copy_.h"
#include "autograd/graph/visit.h"

namespace treadle::autograd {
namespace {

// The lock under which one backward pass at a time adds to the gradient of a tensor. An operator
// may run code of the program's, which may go backward itself, so the lock may be taken again by
// the same thread.
std::recursive_mutex& adding_to(const Tensor& t) {
  static std::array<std::recursive_mutex, 64> all;
  return all[reinterpret_cast<uintptr_t>(t.impl()) / alignof(std::max_align_t) % all.size()];
}

// Replaces `before` by `now`. False when another thread has set another gradient meanwhile; then
// `now` is unchanged.
bool replace_grad(AutogradMeta& meta, const Tensor& before, Tensor& now) {
  const std::lock_guard lock(meta.lock);
  if (!meta.grad.is_same(before)) return false;
  std::swap(meta.grad, now);
  return true;
}

// Whether only `owners` can see the values of `t`. If `t` is a view of all of another tensor, such
// as its transpose, the view alone may keep that tensor.
bool is_owned_by(const Tensor& t, int64_t owners) {
  const ViewMeta* const view = view_of(t);
  const bool is_whole = view && view->base.defined() && view->base.numel() == t.numel() &&
                        view->base.dtype() == t.dtype() && view->base.impl()->use_count() == 1;
  return static_cast<int64_t>(t.impl()->use_count()) <= owners &&
         t.storage()->use_count() == (is_whole ? 2 : 1) && t.storage()->owns_memory();
}

// Whether the memory layout of `grad` suits a gradient of `t`: that of `t` if its elements fill
// their memory, else contiguous.
bool is_laid_out(const Tensor& grad, const Tensor& t) {
  if (t.is_contiguous() || !shape::is_dense(t)) return grad.is_contiguous();
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (t.sizes()[d] != 1 && grad.strides()[d] != t.strides()[d]) return false;
  }
  return true;
}

// The first gradient of `t`: the arriving values if only `owners` hold it and its layout is that of
// `t`, else a copy with that layout. So `t.grad.view(-1)` works where `t.view(-1)` does.
Tensor as_gradient_of(const Tensor& t, Tensor& grad, int64_t owners) {
  // A sparse gradient stays sparse.
  if (!grad.is_strided()) [[unlikely]]
    return grad;
  // The memory of a tensor whose class takes over operators says nothing.
  if (grad.layers() & layer_bit(Layer::Dispatch)) [[unlikely]]
    return aten::clone(grad);
  const auto strides = [&] {
    return shape::is_dense(t) ? DimVector(t.strides()) : contiguous_strides(t.sizes());
  };
  if (is_laid_out(grad, t)) {
    // Optimisers read the memory of gradients, so a lazily conjugated tensor is copied.
    const bool is_lazy = grad.impl()->is_conj() || grad.impl()->is_neg();
    if (grad_enabled() || is_lazy || !is_owned_by(grad, owners)) return aten::clone(grad);
    if (!view_of(grad)) return std::move(grad);
    // A gradient is no view. Its strides are those of `t`, also where a size is 1.
    return alias_with_geometry(grad, grad.sizes(), strides(), grad.storage_offset());
  }
  return aten::copy_(empty_strided_tensor(grad.sizes(), strides(), grad.dtype(), grad.device()),
                     grad);
}

}  // namespace

AccumulateGrad::AccumulateGrad(Tensor leaf) : Node(kFirstInQueue), leaf_(std::move(leaf)) {
  add_input(leaf_);
}

AccumulateGrad::~AccumulateGrad() = default;

void AccumulateGrad::visit_held(OwnedWalk& walk) const { walk.tensor(leaf_); }

// The leaf knows its accumulator without owning it, so another thread may take a reference until
// the entry is cleared.
void AccumulateGrad::destroy() {
  if (AutogradMeta* meta = meta_of(leaf_)) {
    bool taken;
    {
      const std::lock_guard lock(meta->lock);
      // The count stays at one when the last owner lets go without contention.
      taken = use_count() > 1;
      if (!taken && meta->grad_accumulator == this) meta->grad_accumulator = nullptr;
    }
    if (taken) {
      release();
      return;
    }
  }
  Node::destroy();
}

NodePtr grad_accumulator(const Tensor& leaf) {
  AutogradMeta& meta = ensure_meta(leaf);
  {
    const std::lock_guard lock(meta.lock);
    if (meta.grad_accumulator && meta.grad_accumulator->try_retain())
      return NodePtr::adopt(meta.grad_accumulator);
  }
  NodePtr made = make_intrusive<AccumulateGrad>(leaf);
  const std::lock_guard lock(meta.lock);
  if (meta.grad_accumulator && meta.grad_accumulator->try_retain())
    return NodePtr::adopt(meta.grad_accumulator);
  meta.grad_accumulator = made.get();
  return made;
}

void forget_accumulator(const Tensor& leaf) {
  AutogradMeta* meta = meta_of(leaf);
  if (!meta) return;
  const std::lock_guard lock(meta->lock);
  meta->grad_accumulator = nullptr;
}

void accumulate_into(const Tensor& t, Tensor grad, int64_t owners) {
  AutogradMeta& meta = ensure_meta(t);
  std::unique_lock adding(adding_to(t), std::defer_lock);
  // Python code may not run under a lock of C++. So additions that an override takes over run
  // without the lock.
  if (!grad.is_taken_over() && !grad_of(t).is_taken_over()) [[likely]]
    adding.lock();
  for (;;) {
    const Tensor before = grad_of(t);
    if (!before.defined()) {
      Tensor first = as_gradient_of(t, grad, owners);
      if (replace_grad(meta, before, first)) return;
      grad = std::move(first);
      continue;
    }
    // In place, unless .grad is part of a graph itself (create_graph) or has a history that an
    // in-place change would spoil.
    const bool turns_strided = !before.is_strided() && grad.is_strided();
    if (!grad_enabled() && !before.requires_grad() && !turns_strided) {
      aten::add_(before, grad);
      return;
    }
    Tensor sum = turns_strided ? aten::add(grad, before) : aten::add(before, grad);
    if (replace_grad(meta, before, sum)) return;
  }
}

Grads AccumulateGrad::apply(Grads&& grads) {
  Tensor grad = std::move(grads[0]);
  if (!grad.defined()) return {};
  const AutogradMeta* meta = meta_of(leaf_);
  if (const NodePtr maker = grad_fn(leaf_)) {
    fail<ErrorKind::Runtime>(OpName("AccumulateGrad"),
                             "expected a leaf, got a tensor that was made the result "
                             "of ",
                             maker->name(), " by an in-place operation after it was used");
  }
  // The leaf may have been frozen since.
  if (!leaf_.requires_grad()) return {};
  // Hooks that come after the node also receive the gradient, and see its accumulated result.
  const bool is_watched = hooks() && !hooks()->post.empty();
  accumulate_into(leaf_, std::move(grad), is_watched ? 2 : 1);
  if (const LeafHooks* of_leaf = meta->hooks.get()) {
    for (const auto& entry : of_leaf->post_accumulate.snapshot()) (*entry.hook)(leaf_);
  }
  return {};
}

}  // namespace treadle::autograd
