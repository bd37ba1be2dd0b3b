// Saving with hooks, saving outputs, and the checks at unpacking.
#include "autograd/saved_tensor.h"

#include <algorithm>

#include "autograd/saved_visitor.h"

namespace treadle::autograd {

thread_local constinit bool SavedTensor::any_hooks_ __attribute__((tls_model("initial-exec"))) =
    false;

// What hooks made of the tensor, and what it takes to give the result of unpack() the tensor's
// place in the graph.
struct SavedTensor::Packed {
  std::shared_ptr<SavedTensorHooks> hooks;
  std::shared_ptr<void> value;
  Edge edge;  // invalid for an output
  bool is_output = false;
};

void SavedTensor::DeletePacked::operator()(Packed* p) const { delete p; }

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

namespace {

Tensor alias_without_history(const Tensor& t) {
  return alias_with_geometry(t, t.sizes(), t.strides(), t.storage_offset());
}

}  // namespace

void SavedTensor::save_slowly(const Tensor& t, bool is_output, uint32_t output_nr) {
  check<ErrorKind::Runtime>(!t.impl()->is_inference(),
                            "inference tensors cannot be saved for backward; make a normal tensor "
                            "with clone() first and use "
                            "that in autograd");
  if (!any_hooks_) {
    tensor_ = t;
    version_ = t.version();
    state_ = State::Input;
    return;
  }
  const auto hooks = saved_tensor_hooks().back();
  const NoGrad no_grad;
  const uint32_t version = t.version();
  packed_.reset(new Packed{hooks, hooks->pack(is_output ? alias_without_history(t) : t),
                           is_output ? Edge() : gradient_edge(t), is_output});
  check<ErrorKind::Runtime>(t.version() == version,
                            "a pack hook of saved tensors expected to leave its argument as it is, "
                            "but it is modifying it in place");
  output_nr_ = output_nr;
  state_ = State::Packed;
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
  state_ = State::Output;
}

void fail_released(const Node& node) {
  fail<ErrorKind::Runtime>(
      node.name(),
      ": Trying to backward through the graph a second time, but the values it saved were freed "
      "by the first; pass retain_graph=True to the first backward to keep them");
}

Tensor SavedTensor::unpack(const Node& node, const char* what) const {
  switch (state_) {
    case State::Undefined:
      return Tensor();
    case State::Released:
      fail_released(node);
    case State::Unset:
      fail<ErrorKind::Internal>("internal error, please report it: ", node.name(), " did not save ",
                                what);
    case State::Packed:
      break;
    case State::Input:
    case State::Output:
      if (const uint32_t now = tensor_.version(); now != version_) [[unlikely]] {
        fail<ErrorKind::Runtime>(node.name(), ": expected ", what, " at version ", version_,
                                 ", got version ", now,
                                 ": it was changed in place (modified by an inplace operation) "
                                 "after being saved for backward");
      }
      if (state_ == State::Input) return tensor_;
      break;
  }
  // The tensor's place in the graph matters only while a graph is being made of this backward.
  if (state_ == State::Output && !grad_enabled()) return tensor_;
  Tensor value = alias_without_history(
      state_ == State::Packed ? packed_->hooks->unpack(packed_->value) : tensor_);
  Edge edge;
  if (state_ == State::Output || packed_->is_output)
    edge = {NodePtr(const_cast<Node*>(&node)), output_nr_};
  else
    edge = packed_->edge;
  if (!edge.valid()) return value;
  AutogradMeta& meta = ensure_meta(value);
  // For a leaf the edge is its accumulator: a stand-in whose gradient still goes to the leaf.
  meta.grad_fn = edge.node;
  meta.output_nr = edge.input_nr;
  update_layer(value);
  return value;
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

std::vector<Tensor> SavedTensorList::unpack(const Node& node, const char* what) const {
  if (released_) fail_released(node);
  std::vector<Tensor> list;
  list.reserve(saved_.size());
  for (const SavedTensor& s : saved_) list.push_back(s.unpack(node, what));
  return list;
}

}  // namespace treadle::autograd
