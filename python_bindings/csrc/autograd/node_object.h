// Python's view of autograd: nodes of the graph, and handles that remove hooks.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "autograd/graph/node.h"
#include "core/tensor/tensor.h"
#include "python_bindings/csrc/collector.h"
#include "python_bindings/csrc/gil.h"
#include "python_bindings/csrc/python.h"

namespace treadle::python {

// None for a null node.
PyObject* wrap_node(const autograd::NodePtr& node);
// TypeError for other objects than nodes.
const autograd::NodePtr& unwrap_node(const char* op, PyObject* object);
// The saved value under the attribute's name (_saved_self): a new reference, or null without an
// exception if the name is unknown. It is in saved_values.cc.
PyObject* saved_value(const autograd::Node& node, std::string_view attribute);
std::vector<std::string> saved_names(const autograd::Node& node);
// The `ctx` of a custom function's node, borrowed; null for other nodes. It is in
// function_object.cc.
PyObject* context_of_node(const autograd::Node& node);

// A Python function, or any object, held by C++ code that may run and die on any thread.
class HeldFunction {
 public:
  explicit HeldFunction(PyObject* function) : function_(new_ref(function)) {}
  HeldFunction(const HeldFunction&) = delete;
  HeldFunction& operator=(const HeldFunction&) = delete;
  ~HeldFunction();
  // Null after it was released. Under the interpreter lock.
  PyObject* get() const { return function_; }
  void let_go() { Py_CLEAR(function_); }

 private:
  PyObject* function_;
  HeldByGraph counted_;
};

// Python functions that serve as hooks. The graph reports `held` to the collector.
struct HookInPython {
  explicit HookInPython(PyObject* function) : held(std::make_shared<HeldFunction>(function)) {}
  std::shared_ptr<HeldFunction> held;
};
struct TensorHookInPython : HookInPython {
  using HookInPython::HookInPython;
  Tensor operator()(const Tensor& grad) const;
};
struct LeafHookInPython : HookInPython {
  using HookInPython::HookInPython;
  void operator()(const Tensor& leaf) const;
};
struct PreHookInPython : HookInPython {
  using HookInPython::HookInPython;
  autograd::Grads operator()(const autograd::Grads& grads) const;
};
struct PostHookInPython : HookInPython {
  using HookInPython::HookInPython;
  autograd::Grads operator()(const autograd::Grads& inputs, const autograd::Grads& outputs) const;
};

// An object with remove() for a hook of a tensor or of a node. It keeps neither alive.
PyObject* wrap_hook_handle(PyObject* tensor, const HookInPython& hook, autograd::HookId id);
PyObject* wrap_hook_handle(const autograd::NodePtr& node, const HookInPython& hook,
                           autograd::HookId id);
// The node at an address, if it has an object; else null.
autograd::NodePtr node_with_object(const autograd::Node* address);

// For code inside the engine: takes the interpreter lock, and converts a Python exception to a C++
// one.
template <class F>
auto in_python(F&& f) {
  AcquireGil gil;
  const Rest rest;
  try {
    return f();
  } catch (const PythonError&) {
    throw_python_exception();
  } catch (const abi::__forced_unwind&) {
    stay();  // Note [At the end of the program]
  }
}

}  // namespace treadle::python
