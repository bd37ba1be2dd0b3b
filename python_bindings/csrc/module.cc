// treadle._C: the extension module.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/module.h"

#include <vector>

#include "core/dispatch/dispatcher.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/gil.h"
#include "python_bindings/csrc/tensors/construct.h"

namespace treadle::python {
namespace {

PyObject* init() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                   "treadle._C",
                                   "The library behind the package treadle.",
                                   -1,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  return guarded([] {
    Object module(PyModule_Create(&definition));
    init_exceptions(module.get());
    init_quiescence();
    Dispatcher::instance().check_registrations();
    init_constants(module.get());
    init_storage_type(module.get());
    init_generator_type(module.get());
    init_tensor_type(module.get());
    init_node_types(module.get());
    init_hook_type(module.get());
    init_graph_functions(module.get());
    init_anomaly(module.get());
    init_function_type(module.get());
    add_generated_functions(module.get());
    static std::vector<PyMethodDef> functions;
    add_construct_functions(functions);
    functions.push_back({});
    checked(PyModule_AddFunctions(module.get(), functions.data()));
    init_grad_functions(module.get());
    init_settings(module.get());
    init_fusion(module.get());
    init_tensor_groups(module.get());
    init_layouts(module.get());
    init_autocast(module.get());
    init_dispatcher(module.get());
    init_overrides(module.get());
    init_dispatch_modes(module.get());
    init_overridable_functions(module.get());
    init_profiler(module.get());
    init_backends(module.get());
    init_device_memory(module.get());
    init_device_graphs(module.get());
    init_device_trace(module.get());
    init_library(module.get());
    init_outside(module.get());
    init_tvm_ffi(module.get());
    return module.release();
  });
}

}  // namespace
}  // namespace treadle::python

PyMODINIT_FUNC PyInit__C() { return treadle::python::init(); }
