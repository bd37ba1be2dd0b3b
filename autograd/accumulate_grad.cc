// Adding up gradients at leaves.
#include "autograd/accumulate_grad.h"

#include <thread>

#include "aten/ops/add.h"
#include "aten/ops/clone.h"

namespace treadle::autograd {
namespace {

// Guards AutogradMeta::grad_accumulator; held for a few instructions.
class MetaLock {
 public:
  explicit MetaLock(AutogradMeta& meta) : meta_(meta) {
    while (meta_.lock.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~MetaLock() { meta_.lock.clear(std::memory_order_release); }
  MetaLock(const MetaLock&) = delete;
  MetaLock& operator=(const MetaLock&) = delete;

 private:
  AutogradMeta& meta_;
};

// Whether nobody else can see the values of `t`.
bool is_sole_owner(const Tensor& t) {
  return t.impl()->use_count() == 1 && t.storage()->use_count() == 1 && t.storage()->owns_memory();
}

}  // namespace

AccumulateGrad::AccumulateGrad(Tensor leaf) : Node(kFirstInQueue), leaf_(std::move(leaf)) {
  add_input(leaf_);
}

AccumulateGrad::~AccumulateGrad() = default;

// The leaf knows its accumulator without owning it, so another thread may take a reference until
// the entry is cleared.
void AccumulateGrad::destroy() {
  if (AutogradMeta* meta = meta_of(leaf_)) {
    bool taken;
    {
      MetaLock lock(*meta);
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
    MetaLock lock(meta);
    if (meta.grad_accumulator && meta.grad_accumulator->try_retain())
      return NodePtr::adopt(meta.grad_accumulator);
  }
  NodePtr made = make_intrusive<AccumulateGrad>(leaf);
  MetaLock lock(meta);
  if (meta.grad_accumulator && meta.grad_accumulator->try_retain())
    return NodePtr::adopt(meta.grad_accumulator);
  meta.grad_accumulator = made.get();
  return made;
}

void accumulate_into(const Tensor& t, Tensor grad) {
  AutogradMeta& meta = ensure_meta(t);
  if (grad_enabled()) {
    // create_graph: .grad is part of a graph itself, so nothing is changed in place.
    meta.grad = meta.grad.defined() ? aten::add(meta.grad, grad) : aten::clone(grad);
    return;
  }
  if (meta.grad.defined()) {
    // Out of place where the old gradient has a history that an in-place change would spoil.
    if (meta.grad.requires_grad())
      meta.grad = aten::add(meta.grad, grad);
    else
      aten::add_(meta.grad, grad);
    return;
  }
  // An expanded gradient has fewer bytes than elements: it cannot be added to.
  const bool same_layout =
      grad.is_contiguous() || (grad.strides() == t.strides() &&
                               grad.storage()->nbytes() >= static_cast<size_t>(grad.nbytes()));
  meta.grad = same_layout && is_sole_owner(grad) ? std::move(grad) : aten::clone(grad);
}

Grads AccumulateGrad::apply(Grads&& grads) {
  Tensor grad = std::move(grads[0]);
  if (!grad.defined()) return {};
  const AutogradMeta* meta = meta_of(leaf_);
  // The leaf may have been frozen since.
  if (!leaf_.requires_grad()) return {};
  const std::lock_guard<std::mutex> guard(mutex_);
  accumulate_into(leaf_, std::move(grad));
  if (meta->hooks) {
    for (const auto& [id, hook] : meta->hooks->post_accumulate.snapshot()) (*hook)(leaf_);
  }
  return {};
}

}  // namespace treadle::autograd
