// The parts of the extension module, each set up by one function.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "python_bindings/csrc/python.h"

namespace treadle::python {

void init_exceptions(PyObject* module);             // exceptions.cc
void init_constants(PyObject* module);              // constants.cc
void init_storage_type(PyObject* module);           // storage_object.cc
void init_generator_type(PyObject* module);         // generator_object.cc
void init_tensor_type(PyObject* module);            // tensor_object.cc
void init_node_types(PyObject* module);             // node_object.cc
void init_hook_type(PyObject* module);              // hook_handle.cc
void init_graph_functions(PyObject* module);        // graph_functions.cc
void init_anomaly(PyObject* module);                // anomaly_mode.cc
void init_function_type(PyObject* module);          // function_object.cc
void init_grad_functions(PyObject* module);         // grad_functions.cc
void init_settings(PyObject* module);               // settings.cc
void init_fusion(PyObject* module);                 // fusion.cc
void init_autocast(PyObject* module);               // autocast.cc
void init_dispatcher(PyObject* module);             // dispatch/introspection.cc
void init_overrides(PyObject* module);              // overrides.cc
void init_dispatch_modes(PyObject* module);         // dispatch_modes.cc
void init_overridable_functions(PyObject* module);  // overridable_function.cc
void init_profiler(PyObject* module);               // profiler.cc
void init_backends(PyObject* module);               // backends.cc
void init_device_memory(PyObject* module);          // device_memory.cc
void init_device_graphs(PyObject* module);          // device_graphs.cc
void init_device_trace(PyObject* module);           // device_trace.cc
void init_tensor_groups(PyObject* module);          // tensor_groups.cc
void init_layouts(PyObject* module);                // tensors/layouts.cc
void init_library(PyObject* module);                // library.cc
void init_outside(PyObject* module);                // library/outside.cc
void init_tvm_ffi(PyObject* module);                // exchange/tvm_ffi.cc

}  // namespace treadle::python
