// Outputs of custom functions: new tensors, arguments changed in place, or arguments returned
// unchanged.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/custom_function.h"

#include <algorithm>

#include "autograd/alias.h"
#include "autograd/graph/visit.h"
#include "autograd/record.h"
#include "autograd/view.h"

namespace treadle::autograd {
namespace {

bool contains(TensorList list, const Tensor& t) {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& x) { return x.is_same(t); });
}

// The edge of `node` through which the gradient of its argument `t` goes; none if the argument has
// no gradient.
size_t edge_of(const Node& node, const Tensor& t) {
  const Edge edge = gradient_edge(t);
  size_t i = 0;
  while (i < node.num_outputs() && !(edge.valid() && node.edge(i).node == edge.node &&
                                     node.edge(i).input_nr == edge.input_nr))
    ++i;
  return i;
}

bool made_by(const AutogradMeta& meta, const Node& node) {
  const std::lock_guard lock(meta.lock);
  return meta.grad_fn.get() == &node;
}
void set_output_number(AutogradMeta& meta, uint32_t number) {
  const std::lock_guard lock(meta.lock);
  meta.output_nr = number;
}

bool is_recorded(const Node& node) {
  return std::any_of(node.edges().begin(), node.edges().end(),
                     [](const Edge& e) { return e.valid(); });
}

}  // namespace

std::vector<Tensor> FunctionContext::saved_tensors() const {
  check<ErrorKind::Runtime>(node_ != nullptr, OpName("saved_tensors"),
                            "expected to be called in backward");
  return saved_.unpack(*node_, "a tensor given to save_for_backward");
}

void FunctionNode::visit_held(OwnedWalk& walk) const { walk.saved(context.saved_); }

Grads FunctionNode::apply(Grads&& grads) {
  if (context.materialize_grads_) {
    for (size_t i = 0; i < grads.size(); ++i) {
      InputMetadata expected = Node::input(i);
      if (context.materialize_non_diff_grads_) expected.differentiable = context.is_tensor_[i];
      grads[i] = or_zeros(grads[i], expected);
    }
  }
  Grads result = call_backward(grads);
  const size_t wanted = num_outputs();
  // More than one for each argument is fine where the rest is undefined.
  while (result.size() > wanted && !result.back().defined()) result.resize(result.size() - 1);
  check<ErrorKind::Runtime>(result.size() == wanted, OpName(name()), "backward expected to return ",
                            wanted, " gradients, one for each argument of forward, got ",
                            result.size());
  for (size_t i = 0; i < wanted; ++i) {
    if (!edge(i).valid()) result[i].reset();
  }
  return result;
}

std::vector<Tensor> finish_function(FunctionNode* node, TensorList inputs,
                                    std::vector<Tensor> outputs) {
  FunctionContext& context = node->context;
  const NodePtr owner(node);
  const bool recorded = is_recorded(*node);
  for (const Tensor& t : context.dirty_) {
    check<ErrorKind::Runtime>(
        contains(outputs, t), OpName(node->name()),
        "expected every tensor given to mark_dirty to be returned by forward");
    t.impl()->bump_version();
  }
  std::vector<Tensor> results;
  results.reserve(outputs.size());
  context.is_tensor_.clear();
  for (const Tensor& output : outputs) context.is_tensor_.push_back(output.defined());
  for (Tensor& output : outputs) {
    const bool is_input = output.defined() && contains(inputs, output);
    const bool is_dirty = output.defined() && contains(context.dirty_, output);
    const bool differentiable = output.defined() && is_differentiable(output.dtype()) &&
                                !contains(context.non_differentiable_, output);
    if (!recorded || !differentiable) {
      if (recorded && output.defined())
        node->add_input({DimVector(output.sizes()), output.dtype(), output.device(), false});
      else if (recorded)
        node->add_undefined_input();
      // An argument passed through without its gradient must not keep its history.
      const bool cut = recorded && is_input && !is_dirty && output.requires_grad();
      results.push_back(cut ? alias_without_history(output) : output);
      continue;
    }
    // A tensor that is returned twice has only the gradient of the last position.
    if (AutogradMeta* meta = meta_of(output); meta && made_by(*meta, *node)) {
      set_output_number(*meta, node->add_input(output));
    } else if (is_dirty) {
      check_in_place(node->name().c_str(), output, true);
      check<ErrorKind::Runtime>(
          !view_of(output) || outputs.size() == 1, OpName(node->name()),
          "a view can be modified in place only by a Function with one output");
      rebase_history(output, owner, edge_of(*node, output));
    } else if (is_input) {
      output = as_view(output, alias_without_history(output), ViewCreation::CustomFunction);
      set_history(output, owner);
    } else {
      if (ViewMeta* view = view_of(output)) {
        view->creation =
            outputs.size() > 1 ? ViewCreation::MultiOutput : ViewCreation::CustomFunction;
      }
      set_history(output, owner);
    }
    results.push_back(output);
  }
  if (recorded) {
    context.saved_.save_for_function(context.to_save_, results);
  }
  context.to_save_.clear();
  context.dirty_.clear();
  context.non_differentiable_.clear();
  return results;
}

}  // namespace treadle::autograd
