// Hooks, and the destruction of nodes by a list rather than by recursion.
#include "autograd/node.h"

namespace treadle::autograd {

namespace tls {
thread_local constinit const uint8_t* wanted_edges __attribute__((tls_model("initial-exec"))) =
    nullptr;
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

HookId Node::add_tensor_hook(uint32_t input_nr, TensorHook hook) {
  const HookId id = next_hook_id();
  ensure_hooks().tensor.push_back({input_nr, id, std::make_shared<TensorHook>(std::move(hook))});
  return id;
}

HookId Node::add_pre_hook(PreHook hook) {
  return ensure_hooks().pre.add(next_hook_id(), std::move(hook));
}

HookId Node::add_post_hook(PostHook hook) {
  return ensure_hooks().post.add(next_hook_id(), std::move(hook));
}

bool Node::remove_hook(HookId id) {
  if (!hooks_) return false;
  const auto erase_from = [&](std::vector<NodeHooks::OnTensor>& list) {
    return std::erase_if(list, [&](const NodeHooks::OnTensor& h) { return h.id == id; }) > 0;
  };
  return erase_from(hooks_->tensor) || erase_from(hooks_->retains_grad) || hooks_->pre.remove(id) ||
         hooks_->post.remove(id);
}

Grads UndifferentiableNode::apply(Grads&&) {
  fail<ErrorKind::NotImplemented>(op_, ": derivative is not implemented");
}

}  // namespace treadle::autograd
