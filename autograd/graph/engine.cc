// The traversal: hooks, captures, one node after another, and gradients fitted to their
// destinations.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph/engine.h"

#include <algorithm>

#include "aten/engine/strides/view_shapes.h"
#include "aten/ops/add.h"
#include "aten/ops/fill_.h"
#include "aten/ops/ones_like.h"
#include "aten/ops/views/gradients.h"
#include "autograd/graph/accumulate_grad.h"
#include "autograd/graph/anomaly.h"
#include "autograd/graph/graph_task.h"
#include "autograd/graph/nesting.h"
#include "autograd/meta.h"
#include "autograd/saved_tensor.h"
#include "core/dispatch/profiler.h"
#include "core/threads/quiescence.h"

namespace treadle::autograd {
namespace {

thread_local constinit GraphTask* current_task __attribute__((tls_model("initial-exec"))) = nullptr;

thread_local constinit Node* node_of_hooks __attribute__((tls_model("initial-exec"))) = nullptr;

class HooksScope {
 public:
  explicit HooksScope(Node& node) : before_(std::exchange(node_of_hooks, &node)) {}
  ~HooksScope() { node_of_hooks = before_; }
  HooksScope(const HooksScope&) = delete;
  HooksScope& operator=(const HooksScope&) = delete;

 private:
  Node* before_;
};

// The modes of a backward, and its excluded layers, do not depend on the call's context. Layers
// that a region adds stay: a backward inside autocast runs in its dtypes.
class BackwardScope {
 public:
  BackwardScope(GraphTask& task, bool create_graph)
      : layers_(layer_state()),
        mode_(autograd_mode()),
        wanted_(Node::wanted_edges()),
        giving_away_(Node::giving_away()),
        task_(current_task),
        saved_hooks_(saved_tensor_hooks()) {
    // A block without Layer::Dispatch covers the operators of a backward inside it as well.
    layer_state().excluded &= layer_bit(Layer::Dispatch);
    autograd_mode() = {.grad = create_graph, .inference = false};
    Node::wanted_edges() = nullptr;
    Node::giving_away() = nullptr;
    current_task = &task;
  }
  ~BackwardScope() {
    layer_state() = layers_;
    autograd_mode() = mode_;
    Node::wanted_edges() = wanted_;
    Node::giving_away() = giving_away_;
    current_task = task_;
    restore_saved_hooks();
  }
  BackwardScope(const BackwardScope&) = delete;
  BackwardScope& operator=(const BackwardScope&) = delete;

 private:
  // A hook that backward calls may leave a block that it did not enter, or enter one for good.
  void restore_saved_hooks() {
    if (saved_tensor_hooks() == saved_hooks_) [[likely]]
      return;
    while (!saved_tensor_hooks().empty()) SavedTensorHooksScope::pop();
    // Disabling hooks meanwhile affects only hooks that are installed later.
    std::optional<std::string> why;
    std::swap(saved_tensor_hooks_disabled(), why);
    for (auto& hooks : saved_hooks_) SavedTensorHooksScope::push(std::move(hooks));
    std::swap(saved_tensor_hooks_disabled(), why);
  }

  LayerState layers_;
  AutogradMode mode_;
  const uint8_t* wanted_;
  const Node* giving_away_;
  GraphTask* task_;
  std::vector<std::shared_ptr<SavedTensorHooks>> saved_hooks_;
};

// The callbacks of a backward, which may queue others. They run in the modes of the caller.
void run_callbacks(GraphTask& task) {
  if (task.callbacks.empty()) return;
  struct Restored {
    GraphTask* task = current_task;
    ~Restored() { current_task = task; }
  } const restored;
  current_task = &task;
  for (size_t i = 0; i < task.callbacks.size(); ++i) {
    const std::function<void()> callback = std::move(task.callbacks[i]);
    callback();
  }
}

// Whether no other tensor shows the elements of `t`. The base of a view does not count if the view
// alone holds it, as that of a transposed product.
bool is_alone(const Tensor& t) {
  if (t.impl()->use_count() != 1 || !t.storage()->owns_memory()) return false;
  const ViewMeta* const view = view_of(t);
  const bool holds_base = view && view->base.impl()->use_count() == 1 &&
                          view->base.storage().get() == t.storage().get();
  return t.storage()->use_count() == (holds_base ? 2 : 1);
}

// Adds `grad` to the accumulated gradient, in place if no other code can see it.
void add_to(Tensor& sum, Tensor grad) {
  if (!grad.defined()) return;
  if (!sum.defined()) {
    sum = std::move(grad);
    return;
  }
  const bool in_place = !grad_enabled() && sum.sizes() == grad.sizes() &&
                        sum.dtype() == grad.dtype() && sum.is_strided() && grad.is_strided() &&
                        is_alone(sum) && shape::is_dense(sum);
  if (in_place)
    aten::add_(sum, grad);
  else  // a strided and a sparse gradient are added in this order
    sum = sum.is_strided() ? aten::add(sum, grad) : aten::add(grad, sum);
}

void apply_tensor_hook(const TensorHook& hook, const Node& node, Tensor& grad) {
  Tensor replaced = hook(grad);
  if (!replaced.defined()) return;
  check<ErrorKind::Runtime>(replaced.sizes() == grad.sizes() && replaced.dtype() == grad.dtype() &&
                                replaced.device() == grad.device(),
                            OpName(node.name()), "expected a tensor hook to return ", grad,
                            ", got ", replaced);
  grad = std::move(replaced);
}

// Hooks on the gradients of a node's inputs, before captures and before the node.
void run_tensor_hooks(Node& node, Grads& grads) {
  if (const auto* leaf =
          node.sequence_nr() == kFirstInQueue ? dynamic_cast<AccumulateGrad*>(&node) : nullptr) {
    const AutogradMeta* meta = meta_of(leaf->leaf());
    const LeafHooks* hooks = meta ? meta->hooks.get() : nullptr;
    if (!hooks || !grads[0].defined()) return;
    for (const auto& entry : hooks->tensor.snapshot())
      apply_tensor_hook(*entry.hook, node, grads[0]);
    return;
  }
  if (!node.hooks()) return;
  const HooksScope scope(node);
  const auto run = [&](const HookList<TensorHook>& list) {
    for (const auto& entry : list.snapshot()) {
      if (entry.input_nr < grads.size() && grads[entry.input_nr].defined()) {
        apply_tensor_hook(*entry.hook, node, grads[entry.input_nr]);
      }
    }
  };
  run(node.hooks()->tensor);
  run(node.hooks()->retains_grad);
}

// The name of a node in PyTorch's profiler.
std::string profiled_name(const Node& node) {
  const bool leaf = node.sequence_nr() == kFirstInQueue;
  return (leaf ? "torch::autograd::" : "") + node.name();
}

Grads call_node(Node& node, Grads grads) {
  const profiler::Scope recorded(profiler::EventKind::Backward,
                                 [&] { return profiled_name(node); });
  if (!node.hooks() || (node.hooks()->pre.empty() && node.hooks()->post.empty()))
    return node.apply(std::move(grads));
  const HooksScope scope(node);
  for (const auto& entry : node.hooks()->pre.snapshot()) {
    Grads replaced = (*entry.hook)(grads);
    if (replaced.empty()) continue;
    check<ErrorKind::Runtime>(replaced.size() == grads.size(), OpName(node.name()),
                              "a pre-hook expected to return ", grads.size(), " gradients, got ",
                              replaced.size());
    grads = std::move(replaced);
  }
  if (node.hooks()->post.empty()) return node.apply(std::move(grads));
  const Grads given = grads;
  Grads result = node.apply(std::move(grads));
  for (const auto& entry : node.hooks()->post.snapshot()) {
    Grads replaced = (*entry.hook)(result, given);
    if (replaced.empty()) continue;
    check<ErrorKind::Runtime>(replaced.size() == result.size(), OpName(node.name()),
                              "a hook expected to return ", result.size(), " gradients, got ",
                              replaced.size());
    result = std::move(replaced);
  }
  return result;
}

bool fits(const InputMetadata& expected, const Tensor& grad) {
  return grad.sizes() == IntList(expected.sizes) && grad.dtype() == expected.dtype &&
         grad.device() == expected.device;
}

void run_node(GraphTask& task, ReadyQueue& ready, uint32_t index) {
  // Exploring is over, so the reference stays good.
  GraphTask::State& state = task.state(index);
  Node& node = *state.node;
  const profiler::Scope recorded(profiler::EventKind::Backward, [&] {
    return "autograd::engine::evaluate_function: " + profiled_name(node);
  });
  Grads grads = std::move(state.gradients);
  if (state.takes_gradients()) run_tensor_hooks(node, grads);
  for (uint32_t c = state.first_capture; c != GraphTask::kNone; c = task.capture(c).next) {
    task.results[task.capture(c).result] = grads[task.capture(c).input_nr];
  }
  if (!state.needed) {
    // The node does not run, but the nodes below no longer wait for it.
    grads = Grads(node.num_outputs());
  } else {
    Node::wanted_edges() = task.wanted(index);
    // Hooks of the node may read its saved values after it was applied.
    Node::giving_away() = task.keep_graph || node.hooks() ? nullptr : &node;
    grads = anomaly_mode().enabled ? watch(node, [&] { return call_node(node, std::move(grads)); })
                                   : call_node(node, std::move(grads));
    Node::wanted_edges() = nullptr;
    Node::giving_away() = nullptr;
    if (!task.keep_graph) node.release_saved();
  }
  const size_t edges = node.num_outputs();
  for (size_t i = edges; i < grads.size(); ++i) {
    check<ErrorKind::Runtime>(!grads[i].defined(), OpName(node.name()), "expected at most ", edges,
                              " gradients, got ", grads.size());
  }
  check<ErrorKind::Runtime>(grads.size() >= edges || grads.empty(), OpName(node.name()),
                            "expected ", edges, " gradients, got ", grads.size());
  for (size_t i = 0; i < edges; ++i) {
    const uint32_t target = task.target(state, i);
    if (target == GraphTask::kNone) continue;
    GraphTask::State& next = task.state(target);
    if (i < grads.size() && grads[i].defined() && next.takes_gradients()) {
      const uint32_t nr = node.edge(i).input_nr;
      if (next.gradients.empty()) next.gradients.resize(next.node->num_inputs());
      const InputMetadata& expected = next.node->input(nr);
      if (!fits(expected, grads[i])) {
        grads[i] = fit_gradient(expected, std::move(grads[i]), node.broadcasts(), node.name(),
                                "gradient", i);
      }
      add_to(next.gradients[nr], std::move(grads[i]));
    }
    if (--next.dependencies == 0) {
      if (next.gradients.empty()) next.gradients.resize(next.node->num_inputs());
      ready.push(next.node->sequence_nr(), target);
    }
  }
}

Tensor ones_like(const Tensor& t) {
  if (t.is_taken_over()) [[unlikely]]
    return aten::ones_like(t);
  Tensor ones = empty_tensor(t.sizes(), t.dtype(), t.device());
  aten::fill_(ones, 1);
  return ones;
}

// The gradients to begin with, checked against the outputs.
Grads root_gradients(const char* op, TensorList outputs, TensorList gradients) {
  check<ErrorKind::Runtime>(gradients.empty() || gradients.size() == outputs.size(), OpName(op),
                            "expected ", outputs.size(), " gradients, one for each output, got ",
                            gradients.size());
  Grads roots;
  roots.reserve(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    if (!gradients.empty() && gradients[i].defined()) {
      check<ErrorKind::Runtime>(gradients[i].sizes() == output.sizes(), OpName(op),
                                "expected a gradient of shape ", output.sizes(), " for output ", i,
                                ", got ", gradients[i].sizes());
      check<ErrorKind::Runtime>(is_complex(gradients[i].dtype()) == is_complex(output.dtype()),
                                OpName(op), "expected a gradient of dtype ", output.dtype(),
                                " for output ", i, ", got ", gradients[i].dtype());
      check<ErrorKind::Runtime>(gradients[i].device() == output.device(), OpName(op),
                                "expected a gradient on device ", output.device(), " for output ",
                                i, ", got ", gradients[i].device());
      roots.push_back(gradients[i]);
      continue;
    }
    check<ErrorKind::Runtime>(output.numel() == 1, OpName(op),
                              "grad can be implicitly created only for scalar outputs, got shape ",
                              output.sizes());
    check<ErrorKind::Runtime>(!is_complex(output.dtype()), OpName(op),
                              "grad can be implicitly created only for real scalar outputs, got ",
                              output.dtype());
    roots.push_back(ones_like(output));
  }
  return roots;
}

std::vector<Edge> root_edges(const char* op, TensorList outputs) {
  std::vector<Edge> edges;
  edges.reserve(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    check<ErrorKind::Type>(outputs[i].defined(), OpName(op), "expected a tensor for output ", i,
                           ", got None");
    Edge edge = gradient_edge(outputs[i]);
    check<ErrorKind::Runtime>(edge.valid(), OpName(op), "element ", i,
                              " of tensors does not require grad and does not have a grad_fn");
    edges.push_back(std::move(edge));
  }
  return edges;
}

std::vector<Edge> input_edges(const char* op, TensorList inputs) {
  std::vector<Edge> edges;
  edges.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    check<ErrorKind::Type>(inputs[i].defined(), OpName(op), "expected a tensor for input ", i,
                           ", got None");
    Edge edge = gradient_edge(inputs[i]);
    check<ErrorKind::Runtime>(edge.valid(), OpName(op),
                              "one of the differentiated tensors does not require grad: input ", i);
    edges.push_back(std::move(edge));
  }
  return edges;
}

}  // namespace

Tensor fit_gradient(const InputMetadata& expected, Tensor grad, bool broadcasts,
                    std::string_view op, const char* part, size_t number) {
  if (fits(expected, grad)) return grad;
  const IntList sizes = expected.sizes;
  check<ErrorKind::Runtime>(
      sizes == grad.sizes() || (broadcasts && is_expandable_to(sizes, grad.sizes())), OpName(op),
      part, " ", number, ": expected a gradient of shape ", sizes, ", got ", grad.sizes());
  check<ErrorKind::Runtime>(grad.device() == expected.device || grad.dim() == 0, OpName(op), part,
                            " ", number, ": expected a gradient on device ", expected.device,
                            ", got one on ", grad.device());
  return reduce_to(grad, sizes, expected.dtype);
}

std::vector<Tensor> run_backward(ArrayRef<Edge> roots, Grads gradients, ArrayRef<Edge> captures,
                                 WalkOptions options) {
  if (current_task) require_stack();
  GraphTask task(roots);
  task.keep_graph = options.keep_graph;
  if (!captures.empty()) task.restrict_to(captures, options.accumulate);
  ReadyQueue ready;
  {
    const BackwardScope scope(task, options.create_graph);
    const Defers waiting(task.deferral);
    for (size_t i = 0; i < roots.size(); ++i) {
      const uint32_t index = task.find(roots[i].node.get());
      GraphTask::State& state = task.state(index);
      if (state.gradients.empty()) state.gradients.resize(state.node->num_inputs());
      const InputMetadata& expected = state.node->input(roots[i].input_nr);
      add_to(state.gradients[roots[i].input_nr],
             fit_gradient(expected, std::move(gradients[i]), false, "backward", "output", i));
      if (--state.dependencies == 0) ready.push(state.node->sequence_nr(), index);
    }
    gradients.clear();
    while (!ready.empty()) {
      Quiescence::give_way();
      run_node(task, ready, ready.pop());
    }
  }
  run_callbacks(task);
  return std::move(task.results);
}

void backward(TensorList tensors, TensorList gradients, bool retain_graph, bool create_graph,
              TensorList inputs) {
  const std::vector<Edge> roots = root_edges("backward", tensors);
  const std::vector<Edge> captures = input_edges("backward", inputs);
  const WalkOptions options{
      .keep_graph = retain_graph, .create_graph = create_graph, .accumulate = true};
  const std::vector<Tensor> captured =
      run_backward(roots, root_gradients("backward", tensors, gradients), captures, options);
  const GradMode mode(create_graph);
  for (size_t i = 0; i < captured.size(); ++i) {
    if (captured[i].defined()) accumulate_into(inputs[i], captured[i]);
  }
}

std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs,
                         bool retain_graph, bool create_graph, bool allow_unused) {
  check<ErrorKind::Value>(!inputs.empty(), OpName("grad"), "expected at least one input, got none");
  const std::vector<Edge> roots = root_edges("grad", outputs);
  const std::vector<Edge> captures = input_edges("grad", inputs);
  const WalkOptions options{
      .keep_graph = retain_graph, .create_graph = create_graph, .accumulate = false};
  std::vector<Tensor> results =
      run_backward(roots, root_gradients("grad", outputs, grad_outputs), captures, options);
  for (size_t i = 0; i < results.size(); ++i) {
    check<ErrorKind::Runtime>(results[i].defined() || allow_unused, OpName("grad"),
                              "one of the differentiated tensors appears to not have "
                              "been used in the graph: input ",
                              i, "; set allow_unused=True if this is the desired behavior");
  }
  return results;
}

Node* hooks_running_of() { return node_of_hooks; }

int64_t current_backward() { return current_task ? current_task->id : -1; }

bool keeps_graph() { return current_task && current_task->keep_graph; }

bool reaches_all_leaves() { return current_task && !current_task->restricted(); }

bool will_run(const Node* node, uint64_t sequence_nr) {
  if (!current_task) return false;
  const uint32_t index = current_task->find(node);
  // Another node may have been allocated at the same address.
  return index != GraphTask::kNone && node->sequence_nr() == sequence_nr &&
         current_task->state(index).takes_gradients();
}

void queue_callback(std::function<void()> callback) {
  check<ErrorKind::Runtime>(current_task != nullptr, OpName("queue_callback"),
                            "expected to be called during a backward pass");
  current_task->callbacks.push_back(std::move(callback));
}

}  // namespace treadle::autograd
