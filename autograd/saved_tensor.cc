// Saving with hooks, saving outputs, and the checks at unpacking.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/saved_tensor.h"

#include <algorithm>

#include "autograd/alias.h"
#include "autograd/graph/visit.h"
#include "autograd/saved_visitor.h"

namespace treadle::autograd {

thread_local constinit bool SavedTensor::any_hooks_ __attribute__((tls_model("initial-exec"))) =
    false;

// The result of the hooks for the tensor, and the data that give the result of unpack() the
// tensor's position in the graph.
struct SavedTensor::Packed final : RefCounted {
  Packed(std::shared_ptr<SavedTensorHooks> hooks, Edge edge, bool is_output)
      : hooks(std::move(hooks)), edge(std::move(edge)), is_output(is_output) {}
  std::shared_ptr<SavedTensorHooks> hooks;
  std::shared_ptr<void> value;
  Edge edge;  // invalid for an output
  bool is_output;
};

std::vector<std::shared_ptr<SavedTensorHooks>>& saved_tensor_hooks() {
  thread_local std::vector<std::shared_ptr<SavedTensorHooks>> hooks;
  return hooks;
}

std::optional<std::string>& saved_tensor_hooks_disabled() {
  thread_local std::optional<std::string> why;
  return why;
}

void SavedTensorHooksScope::push(std::shared_ptr<SavedTensorHooks> hooks) {
  if (const auto& why = saved_tensor_hooks_disabled()) fail<ErrorKind::Runtime>(*why);
  saved_tensor_hooks().push_back(std::move(hooks));
  SavedTensor::any_hooks_ = true;
}

void SavedTensorHooksScope::pop() {
  saved_tensor_hooks().pop_back();
  SavedTensor::any_hooks_ = !saved_tensor_hooks().empty();
}

void SavedTensor::save_slowly(const Tensor& t, bool is_output, uint32_t output_nr) {
  check<ErrorKind::Runtime>(!t.impl()->is_inference(),
                            "inference tensors cannot be saved for backward; make a normal tensor "
                            "with clone() first and use "
                            "that in autograd");
  if (!any_hooks_) {
    save_input(t);
    return;
  }
  const auto hooks = saved_tensor_hooks().back();
  const NoGrad no_grad;
  const uint32_t version = t.version();
  state_ = State::Lost;
  auto packed = make_intrusive<Packed>(hooks, is_output ? Edge() : gradient_edge(t), is_output);
  packed->value = hooks->pack(is_output ? alias_without_history(t) : t);
  check<ErrorKind::Runtime>(t.version() == version,
                            "a pack hook of saved tensors expected to leave its argument as it is, "
                            "but it is modifying it in place");
  packed_ = std::move(packed);
  output_nr_ = output_nr;
  hold(State::Packed);
}

void SavedTensor::save_output(const Tensor& t, uint32_t output_nr) {
  if (!t.defined()) {
    state_ = State::Undefined;
    return;
  }
  if (!is_differentiable(t.dtype())) {  // it has no history to come back to
    save(t);
    return;
  }
  if (any_hooks_ || t.impl()->is_inference()) [[unlikely]] {
    save_slowly(t, true, output_nr);
    return;
  }
  tensor_ = alias_without_history(t);
  version_ = t.version();
  output_nr_ = output_nr;
  hold(State::Output);
}

void fail_released(const Node& node) {
  fail<ErrorKind::Runtime>(
      OpName(node.name()),
      "Trying to backward through the graph a second time, but the values it saved were freed "
      "by the first; pass retain_graph=True to the first backward to keep them");
}

Tensor SavedTensor::unpack(const Node& node, const char* what) const {
  // Another thread may go backward through the node, and release its saved values, meanwhile.
  Tensor tensor;
  IntrusivePtr<RefCounted> held;
  State state;
  {
    const std::lock_guard lock(lock_);
    tensor = tensor_;
    held = packed_;
    state = state_;
  }
  switch (state) {
    case State::Undefined:
      return Tensor();
    case State::Released:
      fail_released(node);
    case State::Unset:
      fail<ErrorKind::Internal>("internal error, please report it: ", node.name(), " did not save ",
                                what);
    case State::Lost:
      fail<ErrorKind::Runtime>(OpName(node.name()), "expected ", what,
                               " to be saved for backward, but a pack hook of saved tensors raised "
                               "when it was given it");
    case State::Packed:
      break;
    case State::Input:
    case State::Output:
      if (const uint32_t now = tensor.version(); now != version_) [[unlikely]] {
        fail<ErrorKind::Runtime>(OpName(node.name()), "expected ", what, " at version ", version_,
                                 ", got version ", now,
                                 ": it was changed in place (modified by an inplace operation) "
                                 "after being saved for backward");
      }
      break;
  }
  // The tensor's position in the graph matters only while a graph is made of this backward.
  if (state != State::Packed && !grad_enabled()) return tensor;
  if (state == State::Input) {
    check<ErrorKind::Runtime>(!has_maker_ || meta_of(tensor)->has_maker, OpName(node.name()),
                              "expected ", what,
                              " with the history that it was saved with, got a tensor that "
                              "detach_() cut off from it; use "
                              "detach(), which leaves the tensor as it is");
    return tensor;
  }
  const auto* const packed = static_cast<const Packed*>(held.get());
  if (packed) tensor = packed->hooks->unpack(packed->value);
  // An argument without a gradient is the object that the hook returned, the same object for the
  // program.
  if (packed && !packed->is_output && !packed->edge.valid() && !tensor.requires_grad())
    return tensor;
  Tensor value = alias_without_history(tensor);
  Edge edge;
  if (!packed || packed->is_output)
    edge = {NodePtr(const_cast<Node*>(&node)), output_nr_};
  else
    edge = packed->edge;
  if (!edge.valid()) return value;
  AutogradMeta& meta = ensure_meta(value);
  // For a leaf the edge is its accumulator. The result is a stand-in whose gradient still goes to
  // the leaf.
  meta.set_maker(edge.node, edge.input_nr);
  update_layer(value);
  return value;
}

Tensor SavedTensor::take(const Node& node, const char* what) {
  // While a graph is made of this backward, the tensor must keep its position in it.
  if (Node::giving_away() == &node && !grad_enabled()) {
    Tensor tensor;
    const std::lock_guard lock(lock_);
    if ((state_ == State::Input || state_ == State::Output) && tensor_.version() == version_) {
      std::swap(tensor, tensor_);
      set_state(State::Released);
      return tensor;
    }
  }
  return unpack(node, what);
}

void SavedTensor::visit(OwnedWalk& walk) const {
  walk.tensor(tensor_);
  if (const auto* packed = static_cast<const Packed*>(packed_.get())) {
    walk.node(packed->edge.node);
    if (packed->value) walk.kept(packed->value);
  }
}

Value SavedVisitor::value_of(const Node& node, const char* name, const SavedTensor& saved) {
  if (!saved.is_saved()) return Value();
  Tensor value = saved.unpack(node, name);
  return value.defined() ? Value(std::move(value)) : Value();
}

void SavedTensorList::save_for_function(TensorList list, TensorList outputs) {
  save({});
  for (const Tensor& t : list) {
    saved_.emplace_back();
    const auto* output = std::find_if(outputs.begin(), outputs.end(),
                                      [&](const Tensor& o) { return t.defined() && o.is_same(t); });
    if (output == outputs.end())
      saved_.back().save(t);
    else
      saved_.back().save_output(t, static_cast<uint32_t>(output - outputs.begin()));
  }
}

void SavedTensorList::visit(OwnedWalk& walk) const {
  for (const SavedTensor& s : saved_) s.visit(walk);
}

std::vector<Tensor> SavedTensorList::unpack(const Node& node, const char* what) const {
  if (released_) fail_released(node);
  std::vector<Tensor> list;
  list.reserve(saved_.size());
  for (const SavedTensor& s : saved_) list.push_back(s.unpack(node, what));
  return list;
}

}  // namespace treadle::autograd
