// Hooks, and the destruction of nodes by a list instead of by recursion.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph/node.h"

namespace treadle::autograd {

namespace tls {
thread_local constinit const uint8_t* wanted_edges __attribute__((tls_model("initial-exec"))) =
    nullptr;
thread_local constinit const Node* giving_away __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local constinit uint64_t sequence_nr __attribute__((tls_model("initial-exec"))) = 0;
}  // namespace tls

namespace {

// Nodes of this thread whose last reference is gone. Deleting one may add others, through its edges
// or through the tensors it saved.
struct DestroyList {
  Node* first = nullptr;
  bool running = false;
};
thread_local constinit DestroyList destroy_list __attribute__((tls_model("initial-exec")));

}  // namespace

HookId next_hook_id() {
  static std::atomic<HookId> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

void Node::destroy() {
  DestroyList& list = destroy_list;
  next_to_destroy_ = list.first;
  list.first = this;
  if (list.running) return;
  list.running = true;
  while (Node* node = list.first) {
    list.first = node->next_to_destroy_;
    delete node;
  }
  list.running = false;
}

HookId Node::add_tensor_hook(uint32_t input_nr, TensorHook hook, void* held) {
  const HookId id = next_hook_id();
  ensure_hooks().tensor.add(id, std::move(hook), held, input_nr);
  return id;
}

HookId Node::add_pre_hook(PreHook hook, void* held) {
  const HookId id = next_hook_id();
  ensure_hooks().pre.add(id, std::move(hook), held);
  return id;
}

HookId Node::add_post_hook(PostHook hook, void* held) {
  const HookId id = next_hook_id();
  ensure_hooks().post.add(id, std::move(hook), held);
  return id;
}

bool Node::remove_hook(HookId id) {
  NodeHooks* all = hooks();
  return all && (all->tensor.remove(id) || all->retains_grad.remove(id) || all->pre.remove(id) ||
                 all->post.remove(id));
}

Grads UndifferentiableNode::apply(Grads&&) {
  fail<ErrorKind::NotImplemented>(OpName(op_), "derivative is not implemented");
}

}  // namespace treadle::autograd
