// SavedTensor: a tensor kept for backward. It remembers the version of the tensor at that time, so
// a later in-place change is an error and not a wrong gradient. An operator can save its own output
// without a reference cycle.
//
//   node->other_.save(other);                       // an argument
//   node->result_.save_output(result, 0);           // an output
//   Tensor other = other_.unpack(*this, "argument 'other' of mul");
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/meta.h"

namespace treadle::autograd {

// Replaces the saved value (offloading, compression). pack() may return any object, and unpack()
// receives it. pack() receives an argument itself, and an output without its history. The received
// tensor must not be changed in place.
class SavedTensorHooks {
 public:
  virtual ~SavedTensorHooks() = default;
  virtual std::shared_ptr<void> pack(const Tensor& t) = 0;
  virtual Tensor unpack(const std::shared_ptr<void>& packed) = 0;
};
// The hooks of this thread, innermost last. Only the innermost are used.
std::vector<std::shared_ptr<SavedTensorHooks>>& saved_tensor_hooks();

class SavedTensor {
 public:
  // An undefined tensor may be saved, and comes back undefined.
  void save(const Tensor& t) {
    if (!t.defined()) {
      state_ = State::Undefined;
      return;
    }
    if (any_hooks_ || t.impl()->is_inference()) [[unlikely]] {
      save_slowly(t, false);
      return;
    }
    save_input(t);
  }
  // For output `output_nr` of the node that saves it.
  void save_output(const Tensor& t, uint32_t output_nr);
  // `node` is the node that saved it; `what` names the value in messages.
  Tensor unpack(const Node& node, const char* what) const;
  // The same for the last reader in the node. If the running backward frees the node's saved
  // values, the tensor is moved out, and nothing remains to release.
  Tensor take(const Node& node, const char* what);
  // Another thread may be running backward through the same node.
  void release() {
    if (!holds_ || state() == State::Released) return;
    Tensor tensor;
    IntrusivePtr<RefCounted> packed;
    const std::lock_guard lock(lock_);
    std::swap(tensor, tensor_);  // destroyed after the lock is released
    std::swap(packed, packed_);
    set_state(State::Released);
  }
  bool is_saved() const { return holds_ || state() == State::Undefined; }
  void visit(OwnedWalk& walk) const;

 private:
  // Lost: a pack hook raised after the operator had already changed its argument in place.
  enum class State : uint8_t { Unset, Undefined, Input, Output, Packed, Released, Lost };
  struct Packed;
  // Written under the lock, except for the first time. Read without it only for values that do not
  // change.
  State state() const {
    return std::atomic_ref(const_cast<State&>(state_)).load(std::memory_order_relaxed);
  }
  void set_state(State state) { std::atomic_ref(state_).store(state, std::memory_order_relaxed); }
  void hold(State state) {
    state_ = state;
    holds_ = true;
  }
  void save_input(const Tensor& t) {
    tensor_ = t;
    version_ = t.version();
    const AutogradMeta* meta = meta_of(t);
    has_maker_ = meta && meta->has_maker;
    hold(State::Input);
  }
  void save_slowly(const Tensor& t, bool is_output, uint32_t output_nr = 0);
  friend class SavedTensorHooksScope;
  static thread_local constinit bool any_hooks_ __attribute__((tls_model("initial-exec")));

  Tensor tensor_;                    // Output: an alias without history
  IntrusivePtr<RefCounted> packed_;  // a Packed
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  State state_ = State::Unset;
  bool holds_ = false;      // something was saved, though it may be released by now
  bool has_maker_ = false;  // Input: it was the result of an operator
  mutable SpinLock lock_;
};

// Installs hooks on this thread.
class SavedTensorHooksScope {
 public:
  explicit SavedTensorHooksScope(std::shared_ptr<SavedTensorHooks> hooks) {
    push(std::move(hooks));
  }
  ~SavedTensorHooksScope() { pop(); }
  SavedTensorHooksScope(const SavedTensorHooksScope&) = delete;
  SavedTensorHooksScope& operator=(const SavedTensorHooksScope&) = delete;
  // For callers whose scope is not a C++ block.
  static void push(std::shared_ptr<SavedTensorHooks> hooks);
  static void pop();
};

// The reason why hooks may not be installed on this thread. push() raises RuntimeError with this
// message.
std::optional<std::string>& saved_tensor_hooks_disabled();

// A list of tensors kept for backward.
class SavedTensorList {
 public:
  void save(TensorList list) {
    saved_.resize(list.size());
    for (size_t i = 0; i < list.size(); ++i) saved_[i].save(list[i]);
    released_ = false;
  }
  // An element of `list` that is one of `outputs` is saved as an output.
  void save_for_function(TensorList list, TensorList outputs);
  std::vector<Tensor> unpack(const Node& node, const char* what) const;
  void release() {
    for (SavedTensor& s : saved_) s.release();
    released_ = true;
  }
  void visit(OwnedWalk& walk) const;

 private:
  std::vector<SavedTensor> saved_;  // as long as the list of tensors, released or not
  std::atomic<bool> released_{false};
};

// Raised when a graph is traversed again after its saved values were freed.
[[noreturn]] void fail_released(const Node& node);

}  // namespace treadle::autograd
