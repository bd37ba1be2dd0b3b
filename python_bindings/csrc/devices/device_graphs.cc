// The functions beneath graphs of outside devices (treadle/cuda/graphs.py): captures of streams and
// their replay. A graph is an address that the backend returned; the Python object owns it.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/device/graphs.h"

#include <pybind11/pybind11.h>

#include "core/base/error.h"
#include "core/device/backend.h"
#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/devices/backends.h"
#include "python_bindings/csrc/module.h"

namespace py = pybind11;

namespace treadle::python {
namespace {

Graphs& graphs_of(const std::string& name) {
  Graphs* const graphs = require_backend(device_from_string(name).type).graphs();
  check<ErrorKind::NotImplemented>(graphs != nullptr,
                                   "expected a device that captures graphs, got ", name);
  return *graphs;
}

CaptureErrors errors_named(const std::string& mode) {
  if (mode == "global") return CaptureErrors::Global;
  if (mode == "thread_local") return CaptureErrors::ThreadLocal;
  if (mode == "relaxed") return CaptureErrors::Relaxed;
  fail<ErrorKind::Runtime>(OpName("CUDAGraph.capture_begin"),
                           "expected capture_error_mode to be \"global\", \"thread_local\" or "
                           "\"relaxed\", got \"",
                           mode, "\"");
}

void* pointer(uintptr_t graph) { return reinterpret_cast<void*>(graph); }

}  // namespace

void init_device_graphs(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.def(
      "_backend_graph_begin",
      [](const std::string& name, int index, uint64_t pool, const std::string& mode) {
        const CaptureErrors errors = errors_named(mode);
        const Device device = device_at(name, index);
        return graphs_of(name).begin(device.index, current_stream(device), pool, errors);
      },
      "Captures the current stream of a device; returns the number of the pool of memory.",
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_graph_end",
      [](const std::string& name, int index, uint64_t stream) {
        return reinterpret_cast<uintptr_t>(graphs_of(name).end(index, stream));
      },
      "Ends the capture of a stream: the graph.", py::call_guard<ReleaseGil>());
  m.def(
      "_backend_graph_replay",
      [](const std::string& name, uintptr_t graph) {
        Graphs& graphs = graphs_of(name);
        const Device device = device_at(name, graphs.device_of(pointer(graph)));
        graphs.replay(pointer(graph), current_stream(device));
      },
      "Queues a graph in the current stream of its device.", py::call_guard<ReleaseGil>());
  m.def(
      "_backend_graph_destroy",
      [](const std::string& name, uintptr_t graph) { graphs_of(name).destroy(pointer(graph)); },
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_graph_write",
      [](const std::string& name, uintptr_t graph, const std::string& path) {
        graphs_of(name).write(pointer(graph), path);
      },
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_capturing",
      [](const std::string& name, int index) {
        const Device device = device_at(name, index);
        Graphs* const graphs = require_backend(device.type).graphs();
        return graphs && graphs->captured_with(device.index, current_stream(device)).has_value();
      },
      "Whether this thread's current stream on a device is captured.",
      py::call_guard<ReleaseGil>());
}

}  // namespace treadle::python
