// The walk of the garbage collector through what C++ holds.
//
// Note [What the collector sees]
// The collector finds cycles by counting: an object whose references all come from objects it has
// traversed is garbage. So a tensor's object must name what its tensor holds, a hook for one, but
// only while nobody else holds the tensor; else the hook would be named by an object that may go
// while the hook stays. The walk goes from handle to handle for as long as each is the only one.
//
// Each object is traversed several times in one collection, and must name the same objects each
// time. C++ code without the interpreter lock may take new handles meanwhile. It can do so only in
// a block of ReleaseGil that was entered before the collection began: while there are such blocks,
// nothing is named, and what is garbage is found by a later collection.
#include "python_bindings/csrc/collector.h"

#include <atomic>
#include <vector>

#include "autograd/accumulate_grad.h"
#include "autograd/meta.h"
#include "python_bindings/csrc/function_object.h"
#include "python_bindings/csrc/node_object.h"

namespace treadle::python {
namespace {

using autograd::Node;
using autograd::NodePtr;

std::atomic<int> held_by_graph{0};

// A graph may have a million nodes, and each new result would have them walked again: the walk ends
// after this many.
constexpr int kMostNodes = 1000;

class Walk {
 public:
  Walk(visitproc visit, void* arg) : visit_(visit), arg_(arg) {}

  int behind(const Tensor& t) {
    add(t);
    return run();
  }
  int behind(const NodePtr& node) {
    add(node);
    return run();
  }

 private:
  void add(const Tensor& t) {
    if (is_sole_owner(t)) tensors_.push_back(t.impl());
  }
  void add(const NodePtr& node) {
    if (is_sole_owner(node)) nodes_.push_back(node.get());
  }

  int run() {
    for (int left = kMostNodes; left > 0; --left) {
      int result = 0;
      if (!tensors_.empty()) {
        TensorImpl& impl = *tensors_.back();
        tensors_.pop_back();
        result = look_at(impl);
      } else if (!nodes_.empty()) {
        Node& node = *nodes_.back();
        nodes_.pop_back();
        result = look_at(node);
      } else {
        break;
      }
      if (result) return result;
    }
    return 0;
  }

  int visit(PyObject* object) { return object ? visit_(object, arg_) : 0; }
  int visit(const std::shared_ptr<HeldFunction>& held) {
    return held.use_count() == 1 ? visit(held->get()) : 0;
  }
  template <class Hook, class... Signature>
  int visit_hook(const std::shared_ptr<std::function<Signature...>>& function) {
    const auto* hook = function->template target<Hook>();
    return hook && function.use_count() == 1 ? visit(hook->held) : 0;
  }
  // A list's hooks are shared with its snapshot here, and with nobody else while the lock is held.
  template <class Hook, class Function>
  int visit_hooks(const autograd::HookList<Function>& list) {
    if (list.empty()) return 0;
    for (const auto& [id, function] : list.snapshot()) {
      const auto* hook = function->template target<Hook>();
      if (!hook) continue;
      if (const int result = visit(hook->held)) return result;
    }
    return 0;
  }

  int look_at(TensorImpl& impl) {
    PythonSlot& slot = impl.python();
    if (slot.owned()) {
      if (const int result = visit(static_cast<PyObject*>(slot.object()))) return result;
    }
    auto* meta = static_cast<autograd::AutogradMeta*>(impl.autograd_meta());
    if (!meta) return 0;
    if (meta->hooks) {
      if (const int result = visit_hooks<TensorHookInPython>(meta->hooks->tensor)) return result;
      if (const int result = visit_hooks<LeafHookInPython>(meta->hooks->post_accumulate))
        return result;
    }
    add(meta->grad);
    add(meta->grad_fn);
    if (autograd::ViewMeta* view = meta->view()) add(view->base);
    return 0;
  }

  int look_at(Node& node) {
    if (const auto* hooks = node.hooks()) {
      for (const auto& on_tensor : hooks->tensor) {
        if (const int result = visit_hook<TensorHookInPython>(on_tensor.hook)) return result;
      }
      if (const int result = visit_hooks<PreHookInPython>(hooks->pre)) return result;
      if (const int result = visit_hooks<PostHookInPython>(hooks->post)) return result;
      if (hooks->notes.use_count() == 1) {
        if (const int result = visit(static_cast<HeldFunction*>(hooks->notes.get())->get()))
          return result;
      }
    }
    if (const auto* with_context = dynamic_cast<const ContextNode*>(&node)) {
      if (const int result = with_context->traverse(visit_, arg_)) return result;
    } else if (const auto* leaf = dynamic_cast<const autograd::AccumulateGrad*>(&node)) {
      add(leaf->leaf());
    }
    for (const autograd::Edge& edge : node.edges()) add(edge.node);
    return 0;
  }

  visitproc visit_;
  void* arg_;
  std::vector<TensorImpl*> tensors_;
  std::vector<Node*> nodes_;
};

}  // namespace

bool is_sole_owner(const Tensor& t) {
  return t.defined() && t.impl()->use_count() == 1 && ReleaseGil::count() == 0;
}
bool is_sole_owner(const NodePtr& node) {
  return node && node->use_count() == 1 && ReleaseGil::count() == 0;
}

int visit_behind(const Tensor& tensor, visitproc visit, void* arg) {
  return Walk(visit, arg).behind(tensor);
}
int visit_behind(const NodePtr& node, visitproc visit, void* arg) {
  return Walk(visit, arg).behind(node);
}

bool graph_holds_objects() { return held_by_graph.load(std::memory_order_relaxed) > 0; }
HeldByGraph::HeldByGraph() { held_by_graph.fetch_add(1, std::memory_order_relaxed); }
HeldByGraph::~HeldByGraph() { held_by_graph.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace treadle::python
