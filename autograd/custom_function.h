// Functions with their own gradient, written in C++:
//
//   struct Cube : Function<Cube> {
//     static Tensor forward(FunctionContext& ctx, const Tensor& x, double scale) {
//       ctx.save_for_backward({x});
//       ctx.saved_data["scale"] = scale;
//       return aten::mul(aten::mul(x, x), aten::mul(x, scale));
//     }
//     // One gradient for each argument of forward.
//     static Grads backward(FunctionContext& ctx, const Grads& grads) {
//       const Tensor x = ctx.saved_tensors()[0];
//       const double scale = ctx.saved_data["scale"].as<double>();
//       return {aten::mul(grads[0], aten::mul(aten::mul(x, x), 3 * scale)), Tensor()};
//     }
//   };
//   Tensor y = Cube::apply(x, 2.0);
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "autograd/meta.h"
#include "autograd/saved_tensor.h"
#include "core/dispatch/value.h"

namespace treadle::autograd {

// The values that forward saves for backward, and its statements about its outputs.
class FunctionContext {
 public:
  void save_for_backward(TensorList tensors) { to_save_ = tensors.vec(); }
  // In backward: the saved tensors. RuntimeError after the graph was freed, or when a tensor was
  // changed in the meantime.
  std::vector<Tensor> saved_tensors() const;
  // Arguments that forward changed in place and returns.
  void mark_dirty(TensorList tensors) { dirty_ = tensors.vec(); }
  void mark_non_differentiable(TensorList tensors) { non_differentiable_ = tensors.vec(); }
  // Whether backward receives zeros (the default) or undefined tensors for missing gradients. The
  // zeros include outputs without a gradient.
  void set_materialize_grads(bool value) { materialize_grads_ = value; }
  // Whether the same holds for outputs without a gradient.
  void set_materialize_non_diff_grads(bool value) { materialize_non_diff_grads_ = value; }
  bool needs_input_grad(size_t argument) const {
    return argument < node_->num_outputs() && node_->has_edge(argument);
  }

  std::map<std::string, Value> saved_data;

 private:
  friend class FunctionNode;
  friend std::vector<Tensor> finish_function(class FunctionNode* node, TensorList inputs,
                                             std::vector<Tensor> outputs);

  const Node* node_ = nullptr;
  std::vector<Tensor> to_save_, dirty_, non_differentiable_;
  SavedTensorList saved_;
  bool materialize_grads_ = true, materialize_non_diff_grads_ = true;
  std::vector<bool> is_tensor_;  // of each output
};

// The node of a custom function, in any language. A subclass defines the call of backward.
class FunctionNode : public Node {
 public:
  FunctionNode() { context.node_ = this; }
  Grads apply(Grads&& grads) final;
  bool broadcasts() const override { return true; }
  void release_saved() override { context.saved_.release(); }
  void visit_held(OwnedWalk& walk) const override;
  virtual Grads call_backward(const Grads& grads) = 0;

  FunctionContext context;
};

// To be called after forward has run (without recording). It gives the outputs their history and
// saves the context's tensors. Call it also when nothing is recorded, that is, when no edge of
// `node` is valid. An output that is an argument becomes a view of it. If it was marked dirty, its
// history is rebased instead.
std::vector<Tensor> finish_function(FunctionNode* node, TensorList inputs,
                                    std::vector<Tensor> outputs);

template <class F>
struct Function {
  // Has the parameters and the results of F::forward, without the context.
  template <class... Args>
  static auto apply(const Args&... args) {
    auto node = make_intrusive<NodeOf>();
    std::vector<Tensor> inputs;
    const bool recorded = grad_enabled() && (argument_requires_grad(args) || ...);
    (add_argument(*node, inputs, args, recorded), ...);
    auto outputs = [&] {
      const NoGrad no_grad;
      return F::forward(node->context, args...);
    }();
    if constexpr (std::is_same_v<decltype(outputs), Tensor>) {
      return finish_function(node.get(), inputs, {std::move(outputs)})[0];
    } else {
      return finish_function(node.get(), inputs, std::move(outputs));
    }
  }

 private:
  struct NodeOf final : FunctionNode {
    Grads call_backward(const Grads& grads) override { return F::backward(context, grads); }
    std::string name() const override { return "CppFunction"; }
  };
  template <class T>
  static bool argument_requires_grad(const T& argument) {
    if constexpr (std::is_same_v<T, Tensor>)
      return argument.requires_grad();
    else
      return false;
  }
  template <class T>
  static void add_argument(Node& node, std::vector<Tensor>& inputs, const T& argument,
                           bool recorded) {
    if constexpr (std::is_same_v<T, Tensor>) {
      inputs.push_back(argument);
      node.add_edge(recorded ? gradient_edge(argument) : Edge());
    } else {
      node.add_edge({});
    }
  }
};

}  // namespace treadle::autograd
