// SavedTensor: a tensor kept for backward. It remembers the version it was saved at, so that a
// value changed in place since is an error and not a wrong gradient; and an operator can save its
// own output without a reference cycle.
//
//   node->other_.save(other);                       // an argument
//   node->result_.save_output(result, 0);           // an output
//   Tensor other = other_.unpack(*this, "argument 'other' of mul");
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/meta.h"

namespace treadle::autograd {

// Replaces what is saved (offloading, compression): pack() may return anything, unpack() is given
// it back. An argument is given to pack() itself, an output without its history. What is given must
// not be changed in place.
class SavedTensorHooks {
 public:
  virtual ~SavedTensorHooks() = default;
  virtual std::shared_ptr<void> pack(const Tensor& t) = 0;
  virtual Tensor unpack(const std::shared_ptr<void>& packed) = 0;
};
// The hooks of this thread, innermost last; only the innermost are used.
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
    tensor_ = t;
    version_ = t.version();
    state_ = State::Input;
  }
  // For output `output_nr` of the node that saves it.
  void save_output(const Tensor& t, uint32_t output_nr);
  // `node` is the one that saved; `what` names the value in messages.
  Tensor unpack(const Node& node, const char* what) const;
  void release() {
    tensor_.reset();
    packed_.reset();
    state_ = State::Released;
  }
  bool is_saved() const { return state_ != State::Unset; }

 private:
  enum class State : uint8_t { Unset, Undefined, Input, Output, Packed, Released };
  struct Packed;
  struct DeletePacked {
    void operator()(Packed* p) const;
  };
  void save_slowly(const Tensor& t, bool is_output, uint32_t output_nr = 0);
  friend class SavedTensorHooksScope;
  static thread_local constinit bool any_hooks_ __attribute__((tls_model("initial-exec")));

  Tensor tensor_;  // Output: an alias without history
  std::unique_ptr<Packed, DeletePacked> packed_;
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  State state_ = State::Unset;
};

// Puts hooks in force on this thread.
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

// Why hooks may not be put in force on this thread: push() raises RuntimeError with this message.
std::optional<std::string>& saved_tensor_hooks_disabled();

// A list of tensors kept for backward.
class SavedTensorList {
 public:
  void save(TensorList list) {
    saved_.resize(list.size());
    for (size_t i = 0; i < list.size(); ++i) saved_[i].save(list[i]);
    released_ = false;
  }
  // Each of `list` that is one of `outputs` is saved as such.
  void save_for_function(TensorList list, TensorList outputs);
  std::vector<Tensor> unpack(const Node& node, const char* what) const;
  void release() {
    saved_.clear();
    released_ = true;
  }

 private:
  std::vector<SavedTensor> saved_;
  bool released_ = false;
};

// Raised when a graph is walked again after its saved values were freed.
[[noreturn]] void fail_released(const Node& node);

}  // namespace treadle::autograd
