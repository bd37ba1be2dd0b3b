// Node: one recorded operator in the graph that backward walks. A node receives the gradients of
// the operator's outputs and computes those of its inputs, which travel along its edges.
//
//   struct ExpBackward0 : Node {
//     Grads apply(Grads&& grads) override { return {aten::mul(grads[0], result_.unpack(...))}; }
//   };
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aten/engine/deferral.h"
#include "autograd/graph/inline_vector.h"
#include "autograd/graph/spin_lock.h"
#include "core/tensor/tensor.h"

namespace treadle::autograd {

class Node;
class OwnedWalk;
class SavedVisitor;
using NodePtr = IntrusivePtr<Node>;

// Gradients, one for each output (of an operator) or input. An undefined one stands for zeros.
using Grads = InlineVector<Tensor, 2>;

// The destination of a gradient: input `input_nr` of `node`. Invalid where the gradient is not
// needed.
struct Edge {
  NodePtr node;
  uint32_t input_nr = 0;
  bool valid() const { return static_cast<bool>(node); }
};

// The metadata of the forward output that a gradient belongs to.
struct InputMetadata {
  DimVector sizes;
  ScalarType dtype = ScalarType::Float32;
  Device device = kCPU;
  bool differentiable = true;  // false: no gradient ever comes
};

// Hooks return an undefined tensor (or an empty list) to leave the gradients unchanged.
using TensorHook = std::function<Tensor(const Tensor& grad)>;
using PreHook = std::function<Grads(const Grads& grads)>;
using PostHook = std::function<Grads(const Grads& grad_inputs, const Grads& grad_outputs)>;
using HookId = uint64_t;

// Hooks by id. They run in the order of their addition. Threads may add, remove and run hooks at
// the same time.
template <class Hook>
class HookList {
 public:
  struct Entry {
    HookId id;
    std::shared_ptr<const Hook> hook;
    void* held;         // the object that the hook keeps alive, for visit.h; null for none
    uint32_t input_nr;  // of a hook on a gradient: the index of the node's input
  };
  void add(HookId id, Hook hook, void* held = nullptr, uint32_t input_nr = 0) {
    Entry entry{id, std::make_shared<const Hook>(std::move(hook)), held, input_nr};
    const std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  bool remove(HookId id) {
    return remove_if([&](const Entry& e) { return e.id == id; });
  }
  template <class Which>
  bool remove_if(Which&& which) {
    std::vector<Entry> removed;  // destroyed after the lock is released
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < entries_.size();) {
      if (!which(std::as_const(entries_[i]))) {
        ++i;
        continue;
      }
      removed.push_back(std::move(entries_[i]));
      entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return !removed.empty();
  }
  bool empty() const {
    const std::lock_guard lock(mutex_);
    return entries_.empty();
  }
  // A copy, because a hook may add or remove hooks while the list runs.
  std::vector<Entry> snapshot() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }
  // For the only owner of the list.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};
// Ids are unique in the process, so a hook can be removed without knowing its list.
HookId next_hook_id();

// Whether nodes report their creation to an observer: see anomaly.h.
extern std::atomic<bool> watching_nodes;

struct NodeHooks {
  HookList<TensorHook> tensor;        // on the gradient of one output, as Tensor.register_hook
  HookList<TensorHook> retains_grad;  // after those: they fill .grad of a non-leaf
  HookList<PreHook> pre;
  HookList<PostHook> post;
  std::shared_ptr<void> notes;  // values that outside code keeps with the node
};

// Sequence numbers grow on each thread as nodes are made. Backward takes the ready node with the
// largest number first.
uint64_t next_sequence_nr();
inline constexpr uint64_t kFirstInQueue = UINT64_MAX;

class Node : public RefCounted {
 public:
  Node() : sequence_nr_(next_sequence_nr()), deferral_(least_deferred()) {
    if (watching_nodes.load(std::memory_order_relaxed)) [[unlikely]]
      observe_creation();
  }
  explicit Node(uint64_t sequence_nr) : sequence_nr_(sequence_nr) {}

  // Called once per backward with num_inputs() gradients. It returns one gradient for each edge.
  virtual Grads apply(Grads&& grads) = 0;
  // The name in Python: "MulBackward0".
  virtual std::string name() const = 0;
  // Whether a gradient may have the shape to which arguments were broadcast. The engine then sums
  // it to the argument's shape. A gradient of any other shape than its argument's is an error.
  virtual bool broadcasts() const { return false; }
  // Drops the values saved for backward. A later apply() raises RuntimeError.
  virtual void release_saved() {}
  // Shows the saved values, by name.
  virtual void show_saved(SavedVisitor&) const {}
  // Reports the objects that the node holds besides its edges, its hooks and the values of
  // show_saved(): see visit.h.
  virtual void visit_held(OwnedWalk&) const {}

  uint64_t sequence_nr() const { return sequence_nr_; }
  // The least number of elements of a result for which calls waited as the node was recorded.
  int64_t deferral() const { return deferral_; }

  // Edges, one for each differentiable input of the operator.
  ArrayRef<Edge> edges() const { return {edges_.data(), edges_.size()}; }
  const Edge& edge(size_t i) const { return edges_[i]; }
  size_t num_outputs() const { return edges_.size(); }
  void add_edge(Edge edge) { edges_.push_back(std::move(edge)); }
  void set_edge(size_t i, Edge edge) { edges_[i] = std::move(edge); }

  // Inputs (the operator's outputs).
  size_t num_inputs() const { return inputs_.size(); }
  const InputMetadata& input(size_t i) const { return inputs_[i]; }
  // It returns the index of the new input.
  uint32_t add_input(const Tensor& output) {
    return add_input(InputMetadata{DimVector(output.sizes()), output.dtype(), output.device()});
  }
  uint32_t add_input(InputMetadata metadata) {
    inputs_.push_back(std::move(metadata));
    return static_cast<uint32_t>(inputs_.size() - 1);
  }
  // For an output that takes no part in differentiation: its gradient never comes.
  uint32_t add_undefined_input() {
    return add_input(InputMetadata{{}, ScalarType::Float32, kCPU, false});
  }

  // While recording: whether argument i requires grad, so that the inputs of its formula must be
  // saved.
  bool has_edge(size_t i) const { return edges_[i].valid(); }
  bool has_edge(size_t first, size_t count) const {
    for (size_t i = first; i < first + count; ++i)
      if (has_edge(i)) return true;
    return false;
  }
  // While being applied: whether the running backward needs the gradient of edge i.
  bool should_compute(size_t i) const {
    return i < edges_.size() && edges_[i].valid() && (!wanted_edges() || wanted_edges()[i]);
  }
  bool should_compute(size_t first, size_t count) const {
    for (size_t i = first; i < first + count; ++i)
      if (should_compute(i)) return true;
    return false;
  }

  NodeHooks* hooks() const { return hooks_.get(); }
  NodeHooks& ensure_hooks() { return hooks_.ensure(); }
  // `held`: see HookList.
  HookId add_tensor_hook(uint32_t input_nr, TensorHook hook, void* held = nullptr);
  HookId add_pre_hook(PreHook hook, void* held = nullptr);
  HookId add_post_hook(PostHook hook, void* held = nullptr);
  bool remove_hook(HookId id);

  // For each edge of the node being applied on this thread, whether its gradient is needed; null:
  // all are.
  static const uint8_t*& wanted_edges();
  // The node being applied on this thread if the running backward frees its saved values and they
  // are not read afterwards; else null.
  static const Node*& giving_away();

 protected:
  // Never recurses: a chain of a million nodes is freed one node at a time.
  void destroy() override;

 private:
  void observe_creation();

  uint64_t sequence_nr_;
  int64_t deferral_ = kDeferNever;
  InlineVector<Edge, 2> edges_;
  InlineVector<InputMetadata, 1> inputs_;
  MadeOnce<NodeHooks> hooks_;
  Node* next_to_destroy_ = nullptr;
};

namespace tls {
extern thread_local constinit const uint8_t* wanted_edges
    __attribute__((tls_model("initial-exec")));
extern thread_local constinit const Node* giving_away __attribute__((tls_model("initial-exec")));
extern thread_local constinit uint64_t sequence_nr __attribute__((tls_model("initial-exec")));
}  // namespace tls
inline const uint8_t*& Node::wanted_edges() { return tls::wanted_edges; }
inline const Node*& Node::giving_away() { return tls::giving_away; }
inline uint64_t next_sequence_nr() { return tls::sequence_nr++; }

// An operator without a derivative: NotImplementedError when backward reaches it.
class UndifferentiableNode final : public Node {
 public:
  explicit UndifferentiableNode(const char* op) : op_(op) {}
  Grads apply(Grads&& grads) override;
  std::string name() const override { return "NotImplemented"; }

 private:
  const char* op_;
};

// An in-place operator whose result does not depend differentiably on its arguments: all gradients
// are zero.
class ZeroGradientNode final : public Node {
 public:
  Grads apply(Grads&&) override { return Grads(num_outputs()); }
  std::string name() const override { return "ZeroGradient"; }
};

}  // namespace treadle::autograd
