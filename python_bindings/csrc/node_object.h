// Python's view of autograd: nodes of the graph, and handles by which hooks are removed.
#pragma once

#include "autograd/node.h"
#include "core/tensor.h"
#include "python_bindings/csrc/python.h"

namespace treadle::python {

// None for a null node.
PyObject* wrap_node(const autograd::NodePtr& node);
// TypeError for anything but a node.
const autograd::NodePtr& unwrap_node(const char* op, PyObject* object);
// What the node has saved under the attribute's name (_saved_self): a new reference, or null
// without an exception where there is nothing of that name. In saved_values.cc.
PyObject* saved_value(const autograd::Node& node, std::string_view attribute);
std::vector<std::string> saved_names(const autograd::Node& node);
// The `ctx` of a custom function's node, borrowed; null for other nodes. In function_object.cc.
PyObject* context_of_node(const autograd::Node& node);

// An object with remove() for a hook; exactly one of the owners is given.
PyObject* wrap_hook_handle(const Tensor& tensor, autograd::HookId id);
PyObject* wrap_hook_handle(const autograd::NodePtr& node, autograd::HookId id);

// A Python function, or any object, held by C++ code that may run and die on any thread.
class HeldFunction {
 public:
  explicit HeldFunction(PyObject* function) : function_(new_ref(function)) {}
  HeldFunction(const HeldFunction& o);
  HeldFunction& operator=(const HeldFunction&) = delete;
  ~HeldFunction();
  PyObject* get() const { return function_; }

 private:
  PyObject* function_;
};

// Calls `function(grad)` and gives the tensor it returns, undefined for None; what it raises goes
// through C++ code.
Tensor call_hook(const HeldFunction& function, const Tensor& grad);

// For code inside the engine: takes the interpreter lock, and lets a Python exception travel as a
// C++ one.
template <class F>
auto in_python(F&& f) {
  AcquireGil gil;
  try {
    return f();
  } catch (const PythonError&) {
    throw_python_exception();
  }
}

}  // namespace treadle::python
