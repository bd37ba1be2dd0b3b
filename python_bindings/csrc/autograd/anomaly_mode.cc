// Anomaly mode for Python. A node's metadata holds its stack, and a backward that fails warns with
// it.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph/anomaly.h"

#include "python_bindings/csrc/arguments/arg_parser.h"
#include "python_bindings/csrc/autograd/node_object.h"
#include "python_bindings/csrc/module.h"

namespace treadle::python {
namespace {

class Observer final : public autograd::AnomalyObserver {
 public:
  // The node is under construction: it has no name and no owner yet, only metadata.
  void created(autograd::Node& node, autograd::Node* parent) override {
    if (!interpreter_alive()) return;
    in_python([&] {
      Object record = import_attribute("treadle.autograd.anomaly_mode", "_origin");
      Object maker(wrap_node(autograd::NodePtr(parent)));
      Object notes(call_python(PyObject_CallOneArg, record.get(), maker.get()));
      node.ensure_hooks().notes = std::make_shared<HeldFunction>(notes.get());
    });
  }
  void failed(const autograd::Node& node) override {
    if (!interpreter_alive()) return;
    in_python([&] {
      Object warn = import_attribute("treadle.autograd.anomaly_mode", "_warn_of");
      Object argument(wrap_node(autograd::NodePtr(const_cast<autograd::Node*>(&node))));
      Object done(call_python(PyObject_CallOneArg, warn.get(), argument.get()));
    });
  }
};

// _set_anomaly_mode(enabled, check_nan): returns the previous setting.
PyObject* set_mode(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_internal(count == 2, "_set_anomaly_mode takes two bools");
    for (Py_ssize_t i = 0; i < 2; ++i) {
      check<ErrorKind::Type>(PyBool_Check(arguments[i]), OpName("set_detect_anomaly"),
                             "expected a bool, got ", type_text(arguments[i]));
    }
    const autograd::AnomalyMode before = autograd::anomaly_mode();
    autograd::set_anomaly_mode(
        {.enabled = arguments[0] == Py_True, .check_nan = arguments[1] == Py_True});
    return Object(Py_BuildValue("(NN)", to_bool(before.enabled), to_bool(before.check_nan)))
        .release();
  });
}
PyObject* is_enabled(PyObject*, PyObject*) { return to_bool(autograd::anomaly_mode().enabled); }
PyObject* is_checking(PyObject*, PyObject*) { return to_bool(autograd::anomaly_mode().check_nan); }

}  // namespace

void init_anomaly(PyObject* module) {
  static Observer observer;
  autograd::set_anomaly_observer(&observer);
  static PyMethodDef functions[] = {
      {"_set_anomaly_mode", reinterpret_cast<PyCFunction>(slot(&set_mode)), METH_FASTCALL, nullptr},
      {"is_anomaly_enabled", is_enabled, METH_NOARGS,
       "is_anomaly_enabled()\n--\n\nWhether anomaly mode is on."},
      {"is_anomaly_check_nan_enabled", is_checking, METH_NOARGS,
       "is_anomaly_check_nan_enabled()\n--\n\nWhether anomaly mode looks for NaN."},
      {},
  };
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace treadle::python
