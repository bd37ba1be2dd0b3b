// Common parts of custom functions and custom operators: `ctx`, and the node that passes it to
// backward. The node owns `ctx`. `ctx` does not own the node, so there is no reference cycle.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "autograd/custom_function.h"
#include "python_bindings/csrc/autograd/node_object.h"

namespace treadle::python {

// A new treadle.autograd.FunctionContext.
Object new_context();

// The node of a call whose backward is written in Python.
class ContextNode : public autograd::FunctionNode {
 public:
  explicit ContextNode(PyObject* ctx);
  ~ContextNode() override;
  PyObject* ctx() const { return ctx_.get(); }
  void visit_held(autograd::OwnedWalk& walk) const override;
  // The tuple for ctx.needs_input_grad. A reference is taken over.
  void set_needs_input_grad(PyObject* needs);

 private:
  mutable HeldFunction ctx_;
};

}  // namespace treadle::python
