// The engine's entry points for treadle.autograd: backward() and grad() over lists of tensors.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph/engine.h"
#include "python_bindings/csrc/arguments/arg_parser.h"
#include "python_bindings/csrc/autograd/node_object.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/module.h"
#include "python_bindings/csrc/tensors/methods.h"

namespace treadle::python {
namespace {

const Param backward_params[] = {
    {"tensors", Kind::TensorList}, {"grad_tensors", Kind::TensorList, kNullableItems},
    {"retain_graph", Kind::Bool},  {"create_graph", Kind::Bool},
    {"inputs", Kind::TensorList},
};
const Signature backward_signature[] = {{backward_params, 5, 5, -1, true}};
Function backward_function = {"backward", backward_signature, 1};

PyObject* backward(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded(
      [&] {
        Call<5> call(backward_function, nullptr, arguments, count, names);
        const std::vector<Tensor> tensors = call.tensors(0), gradients = call.tensors(1),
                                  inputs = call.tensors(4);
        check<ErrorKind::Runtime>(tensors.size() == gradients.size(), OpName("backward"),
                                  "expected as many grad_tensors as tensors, got ",
                                  gradients.size(), " for ", tensors.size());
        const bool retain_graph = call.boolean(2), create_graph = call.boolean(3);
        {
          const ReleaseGil released;
          autograd::backward(tensors, gradients, retain_graph, create_graph, inputs);
        }
        return none();
      },
      "backward");
}

const Param grad_params[] = {
    {"outputs", Kind::TensorList},
    {"inputs", Kind::TensorList},
    {"grad_outputs", Kind::TensorList, kNullableItems},
    {"retain_graph", Kind::Bool},
    {"create_graph", Kind::Bool},
    {"allow_unused", Kind::Bool},
};
const Signature grad_signature[] = {{grad_params, 6, 6, -1, true}};
Function grad_function = {"grad", grad_signature, 1};

PyObject* grad(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded(
      [&] {
        Call<6> call(grad_function, nullptr, arguments, count, names);
        const std::vector<Tensor> outputs = call.tensors(0), inputs = call.tensors(1),
                                  grad_outputs = call.tensors(2);
        check<ErrorKind::Runtime>(outputs.size() == grad_outputs.size(), OpName("grad"),
                                  "expected as many grad_outputs as outputs, got ",
                                  grad_outputs.size(), " for ", outputs.size());
        const bool retain_graph = call.boolean(3), create_graph = call.boolean(4),
                   allow_unused = call.boolean(5);
        std::vector<Tensor> found;
        {
          const ReleaseGil released;
          found = autograd::grad(outputs, inputs, grad_outputs, retain_graph, create_graph,
                                 allow_unused);
        }
        return wrap(found);
      },
      "grad");
}

// Called at both ends of every no_grad() block.
PyObject* set_grad_enabled(PyObject*, PyObject* enabled) {
  return guarded([&] {
    check<ErrorKind::Type>(PyBool_Check(enabled), OpName("set_grad_enabled"),
                           "expected a bool, got ", type_text(enabled));
    return to_bool(std::exchange(autograd_mode().grad, enabled == Py_True));
  });
}
PyObject* is_grad_enabled(PyObject*, PyObject*) { return to_bool(grad_enabled()); }

PyObject* queue_callback(PyObject*, PyObject* function) {
  return guarded([&] {
    autograd::queue_callback([held = std::make_shared<HeldFunction>(function)] {
      in_python([&] { Object done(call_python(PyObject_CallNoArgs, held->get())); });
    });
    return none();
  });
}

}  // namespace

void init_grad_functions(PyObject* module) {
  static PyMethodDef functions[] = {
      fast_method("_backward", &backward, "backward() over lists."),
      fast_method("_grad", &grad, "grad() over lists."),
      {"_set_grad_enabled", set_grad_enabled, METH_O, "Returns what was set before."},
      {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
       "is_grad_enabled()\n--\n\nWhether operations are recorded for backward."},
      {"_queue_callback", queue_callback, METH_O,
       "Calls a function after the backward that is running."},
      {},
  };
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace treadle::python
