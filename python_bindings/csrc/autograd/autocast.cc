// The thread's settings of autocast: for each device, whether it is enabled and its 16-bit dtype;
// the cache of cast weights; the nesting depth of contexts.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/autocast.h"

#include <pybind11/pybind11.h>

#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/module.h"

namespace py = pybind11;

namespace treadle::python {
namespace {

DeviceType type_of(const std::string& device_type) { return device_from_string(device_type).type; }

}  // namespace

void init_autocast(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.def(
      "_autocast_is_enabled",
      [](const std::string& device) { return autocast::is_enabled(type_of(device)); },
      "Whether autocast is enabled for a type of device on this thread.");
  m.def(
      "_autocast_set_enabled",
      [](const std::string& device, bool enabled) {
        autocast::set_enabled(type_of(device), enabled);
      },
      "Enables or disables autocast for a type of device on this thread.");
  m.def(
      "_autocast_dtype",
      [](const std::string& device) { return autocast::lower_dtype(type_of(device)); },
      "The 16-bit dtype of autocast for a type of device on this thread.");
  m.def(
      "_autocast_set_dtype",
      [](const std::string& device, ScalarType dtype) {
        autocast::set_lower_dtype(type_of(device), dtype);
      },
      "Sets the 16-bit dtype of autocast for a type of device on this thread.");
  m.def("is_autocast_cache_enabled", &autocast::is_cache_enabled,
        "Whether cast weights are kept until the outermost autocast context is left.");
  m.def("set_autocast_cache_enabled", &autocast::set_cache_enabled, py::arg("enabled"),
        "Sets whether cast weights are kept until the outermost autocast context is left.");
  m.def("clear_autocast_cache", &autocast::clear_cache, "Drops the cast weights of this thread.");
  m.def("autocast_increment_nesting", &autocast::enter,
        "One autocast context more on this thread; returns how many there are.");
  m.def("autocast_decrement_nesting", &autocast::leave,
        "One autocast context less on this thread; returns how many there are.");
}

}  // namespace treadle::python
