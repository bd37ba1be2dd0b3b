// The work of outside devices while a profiler ran, for treadle.profiler.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/device/device_trace.h"

#include <pybind11/pybind11.h>

#include "core/base/error.h"
#include "core/device/backend.h"
#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/module.h"

namespace py = pybind11;

namespace treadle::python {
namespace {

DeviceTrace& trace_of(const std::string& name) {
  DeviceTrace* const trace = require_backend(device_from_string(name).type).trace();
  check<ErrorKind::NotImplemented>(trace != nullptr,
                                   "expected a device that records its work, got ", name);
  return *trace;
}

py::list stop(const std::string& name) {
  std::vector<DeviceEvent> events;
  {
    DeviceTrace& trace = trace_of(name);
    const ReleaseGil unlocked;
    events = trace.stop();
  }
  py::list all;
  for (const DeviceEvent& e : events)
    all.append(py::make_tuple(e.name, static_cast<int>(e.kind), e.device, e.stream, e.begin_ns,
                              e.end_ns, e.queued_ns, e.thread, e.call, e.bytes));
  return all;
}

}  // namespace

void init_device_trace(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.def(
      "_device_traced",
      [](const std::string& name) {
        Backend* const backend = backend_of(device_from_string(name).type);
        return backend && backend->trace();
      },
      "Whether the work of a kind of device can be recorded.");
  m.def(
      "_device_trace_start", [](const std::string& name) { trace_of(name).start(); },
      py::call_guard<ReleaseGil>(), "Begins to record what devices of a kind do.");
  m.def("_device_trace_stop", &stop,
        "Ends that: (name, kind, device, stream, begin, end, queued, "
        "thread, call, bytes) of each kernel, copy and fill.");
}

}  // namespace treadle::python
