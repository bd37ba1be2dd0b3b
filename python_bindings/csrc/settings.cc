// The library's settings: threads, the default dtype, properties of dtypes, autograd modes of the
// thread.
//
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include "core/base/layers.h"
#include "core/base/math_switches.h"
#include "core/device/sync_debug_mode.h"
#include "core/memory/allocator.h"
#include "core/threads/parallel.h"
#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/devices/default_device.h"
#include "python_bindings/csrc/exceptions.h"
#include "python_bindings/csrc/module.h"
#include "python_bindings/csrc/package_name.h"

namespace py = pybind11;

namespace treadle::python {
namespace {

// The dtype of a tensor's elements or of a Python number, for result_type().
struct Operand {
  ScalarType dtype;
  int rank;  // 0 for a number, 1 for a 0-dim tensor, 2 for a tensor: a higher one decides within a
             // category
};

Operand operand(const py::handle& o) {
  if (is_tensor(o.ptr())) {
    const Tensor& t = unwrap(o.ptr());
    return {t.dtype(), t.impl()->is_wrapped_number() ? 0 : t.dim() == 0 ? 1 : 2};
  }
  check<ErrorKind::Type>(is_number(o.ptr()), OpName("result_type"),
                         "expected tensors or numbers, got ", type_text(o.ptr()));
  return {to_scalar("result_type", o.ptr()).type(), 0};
}

int category(ScalarType t) {
  return is_complex(t) ? 3 : is_floating(t) ? 2 : t == ScalarType::Bool ? 0 : 1;
}

ScalarType result_type(const py::handle& a, const py::handle& b) {
  const Operand x = operand(a), y = operand(b);
  if (x.rank == y.rank) return promote_types(x.dtype, y.dtype);
  const Operand &high = x.rank > y.rank ? x : y, &low = x.rank > y.rank ? y : x;
  if (category(low.dtype) <= category(high.dtype)) return high.dtype;
  // A complex one lends its kind, and the precision is that of the other.
  if (is_complex(low.dtype)) return is_floating(high.dtype) ? to_complex(high.dtype) : low.dtype;
  return promote_types(low.dtype, high.dtype);
}

// Sets the thread's default device, None for the CPU; returns the previous one.
py::object exchange_default_device(const py::object& device) {
  check<ErrorKind::Type>(device.is_none() || is_device(device.ptr()), OpName("set_default_device"),
                         "expected a device or None, got ", type_text(device.ptr()));
  std::optional<Device> wanted;
  if (!device.is_none()) wanted = to_device(device.ptr());
  const std::optional<Device> before = std::exchange(default_device(), wanted);
  return before ? py::reinterpret_steal<py::object>(wrap(*before)) : py::none();
}

py::object get_default_device() {
  return py::reinterpret_steal<py::object>(wrap(default_device().value_or(kCPU)));
}

py::dict memory_stats() {
  const MemoryStats s = cpu_memory_stats();
  py::dict d;
  d["current_bytes"] = s.current_bytes;
  d["peak_bytes"] = s.peak_bytes;
  d["allocations"] = s.allocations;
  d["frees"] = s.frees;
  return d;
}

// A switch by the name of its field.
std::atomic<bool>& math_switch(const std::string& name) {
  MathSwitches& all = math_switches();
  if (name == "matmul_tf32") return all.matmul_tf32;
  if (name == "convolution_tf32") return all.convolution_tf32;
  if (name == "convolution_benchmark") return all.convolution_benchmark;
  if (name == "convolution_deterministic") return all.convolution_deterministic;
  if (name == "recurrent_library") return all.recurrent_library;
  if (name == "fills_new_memory") return all.fills_new_memory;
  fail<ErrorKind::Value>(OpName("_math_switch"), "expected the name of a switch, got '", name, "'");
}

// Callable from any thread, with or without the interpreter lock.
void warn(const char* text) {
  const AcquireGil lock;
  checked(call_python(PyErr_WarnEx, PyExc_UserWarning, text, 1));
}

}  // namespace

void init_settings(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  py::register_exception_translator([](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const Error&) {
      set_python_exception();
    } catch (const PythonError&) {
    } catch (const std::exception& other) {
      if (!restore_carried(other)) throw;
    }
  });
  m.def("_speak_as", &set_package_name, py::arg("name"),
        "Sets the name by which the program knows the package.");
  m.def("set_num_threads", &set_num_threads, py::arg("num_threads"),
        "How many threads an operator may use.");
  m.def("get_num_threads", &num_threads, "How many threads an operator may use.");
  m.def("get_default_dtype", &default_dtype,
        "The dtype of new floating tensors when none is given.");
  m.def("set_default_dtype", &set_default_dtype, py::arg("d"),
        "Sets the dtype of new floating tensors when none is given.");
  m.def("get_default_device", &get_default_device, "The device of new tensors when none is given.");
  m.def("_exchange_default_device", &exchange_default_device, py::arg("device"),
        "Sets the device of new tensors; returns what was set before.");
  m.def("promote_types", &promote_types, py::arg("type1"), py::arg("type2"),
        "The dtype that holds the values of both.");
  m.def("can_cast", &can_cast, py::arg("from_"), py::arg("to"),
        "Whether values may be converted without changing kind.");
  m.def("result_type", &result_type, py::arg("tensor1"), py::arg("tensor2"),
        "The dtype of an operation on both.");
  m.def(
      "_math_switch", [](const std::string& name) { return math_switch(name).load(); },
      py::arg("name"), "A switch of the libraries beneath operators.");
  m.def(
      "_set_math_switch", [](const std::string& name, bool on) { math_switch(name) = on; },
      py::arg("name"), py::arg("on"), "Sets a switch of the libraries beneath operators.");
  m.def(
      "_convolution_candidates", [] { return math_switches().convolution_candidates.load(); },
      "How many ways of a convolution are timed at most.");
  m.def(
      "_set_convolution_candidates",
      [](int64_t most) {
        check<ErrorKind::Value>(most >= 0, OpName("benchmark_limit"), "expected at least 0, got ",
                                most);
        math_switches().convolution_candidates = most;
      },
      py::arg("most"), "Sets how many ways of a convolution are timed at most; 0: all.");
  set_sync_warning(&warn);
  m.def(
      "_waits", [] { return static_cast<int>(sync_debug_mode()); },
      "What becomes of calls that wait.");
  m.def(
      "_set_waits", [](int mode) { set_sync_debug_mode(static_cast<SyncDebugMode>(mode)); },
      py::arg("mode"), "Sets what becomes of calls that wait: 0 nothing, 1 a warning, 2 an error.");
  m.def("_memory_stats", &memory_stats, "Bytes and allocations on the CPU.");

  m.def("is_inference_mode_enabled", &inference_enabled, "Whether inference mode is on.");
  m.def(
      "_set_inference_mode",
      [](bool enabled) { return std::exchange(autograd_mode().inference, enabled); },
      "Returns what was set before.");
}

}  // namespace treadle::python
