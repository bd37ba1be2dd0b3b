// The dispatcher's functions for treadle.library and treadle.ops: defining operators, registering
// Python functions as their kernels, and the facts of a schema.
//
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "core/dispatch/dispatcher.h"
#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/library/defined_operator.h"
#include "python_bindings/csrc/library/stable_abi.h"
#include "python_bindings/csrc/module.h"

namespace py = pybind11;

namespace treadle::python {

DeviceType device_type_of(const std::string& name) {
  for (int d = 0; d < num_device_types(); ++d) {
    if (name_of(static_cast<DeviceType>(d)) == name) return static_cast<DeviceType>(d);
  }
  std::string known;
  for (int d = 0; d < num_device_types(); ++d)
    known += str(d ? ", " : "", name_of(static_cast<DeviceType>(d)));
  fail<ErrorKind::Runtime>("expected the name of a device, one of ", known, ", got '", name, "'");
}

namespace {

KernelOrigin place_of(const std::string& file, int line) {
  return {KernelSource::DeviceLayout, file.c_str(), line, ""};
}

LibraryOperator& defined(const std::string& name) {
  LibraryOperator& op = LibraryOperator::named(name);
  check<ErrorKind::Runtime>(op.dynamic() != nullptr, OpName(name),
                            "expected an operator that was defined at run time, got one of the "
                            "library's own");
  return op;
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (int d = 0; d < num_device_types(); ++d)
    names.emplace_back(name_of(static_cast<DeviceType>(d)));
  return names;
}

Layer layer_named(const std::string& name) {
  return name == "autocast" ? Layer::Autocast : Layer::Autograd;
}

std::string define(const std::string& schema, const std::string& file, int line) {
  return DynamicOperator::define(schema, place_of(file, line)).info().name;
}

void set_kernel(const std::string& name, const std::string& device, const py::function& function,
                const std::string& file, int line) {
  LibraryOperator& op = LibraryOperator::named(name);
  const DeviceType type = device_type_of(device);
  if (op.dynamic())
    op.set_kernel(type, function.ptr(), place_of(file, line));
  else
    set_generated_kernel(Dispatcher::instance().at(name), type, function.ptr(),
                         place_of(file, line));
}
void clear_kernel(const std::string& name, const std::string& device) {
  LibraryOperator& op = LibraryOperator::named(name);
  if (op.dynamic())
    op.clear_kernel(device_type_of(device));
  else
    clear_generated_kernel(Dispatcher::instance().at(name), device_type_of(device));
}
void set_default_kernel(const std::string& name, const py::function& function, bool composite,
                        const std::string& file, int line) {
  defined(name).set_default_kernel(function.ptr(), composite, place_of(file, line));
}
void set_layer_function(const std::string& name, const std::string& layer,
                        const py::object& function, const std::string& file, int line) {
  defined(name).set_layer_function(layer_named(layer), function.ptr(), place_of(file, line));
}
void set_formula(const std::string& name, const py::object& backward, const py::object& setup,
                 bool replace, const std::string& file, int line) {
  defined(name).set_formula(backward.ptr(), setup.ptr(), replace, place_of(file, line));
}
bool has_kernel(const std::string& name, const std::string& device) {
  const Operator& op = Dispatcher::instance().at(name);
  const KernelRow* row =
      op.has_table() ? op.table().row(device_type_of(device), Layout::Strided) : nullptr;
  if (!row) return false;
  for (size_t t = 0; t < kNumScalarTypes; ++t) {
    if (row->kernels[t] || row->boxed[t]) return true;
  }
  return false;
}

// (namespace, name, overload, arguments, results, text, whether defined at run time). An argument:
// (name, type, whether it has a default, the default, keyword only, alias); a result: (name, type,
// alias). An alias: None, or (written, sets before, sets after).
py::tuple describe_schema(const std::string& name) {
  const LibraryOperator& op = LibraryOperator::named(name);
  const auto sets = [](const schema::Type& type) -> py::object {
    if (!type.alias) return py::none();
    return py::make_tuple(type.writes(), py::cast(type.alias->before), py::cast(type.alias->after));
  };
  const auto type_text = [](schema::Type type) {
    type.alias.reset();
    return schema::print(type);
  };
  py::list arguments, results;
  for (size_t i = 0; i < op.schema().arguments.size(); ++i) {
    const schema::Argument& a = op.schema().arguments[i];
    PyObject* otherwise = op.default_object(i);
    arguments.append(
        py::make_tuple(a.name, type_text(a.type), a.default_value.has_value(),
                       otherwise ? py::reinterpret_borrow<py::object>(otherwise) : py::none(),
                       a.kwarg_only, sets(a.type)));
  }
  for (const schema::Return& r : op.schema().returns)
    results.append(py::make_tuple(r.name, type_text(r.type), sets(r.type)));
  const schema::OperatorName& n = op.schema().name;
  const std::string full(op.op().info().name);
  const std::string ns = full.substr(0, full.find("::"));
  return py::make_tuple(ns, n.base, n.overload, arguments, results,
                        std::string(op.op().info().schema), op.dynamic() != nullptr);
}

// Names of all overloads of "my_ns::name".
std::vector<std::string> overloads(const std::string& name) {
  std::vector<std::string> found;
  for (const Operator* op : Dispatcher::instance().operators()) {
    const std::string_view full = op->info().name;
    if (full.substr(0, full.find('.')) == name) found.emplace_back(full);
  }
  return found;
}

// Turns a layer off, or on again, for this thread. Returns the previous setting.
bool exclude_layer(const std::string& name, bool excluded) {
  const LayerMask bit = layer_bit(layer_named(name));
  LayerMask& mask = layer_state().excluded;
  const bool before = mask & bit;
  mask = static_cast<LayerMask>(excluded ? mask | bit : mask & ~bit);
  return before;
}

// A `with` in which this thread's calls skip autograd, as a kernel's do that was called by it.
struct BelowAutograd {
  void enter() {
    before = layer_state().excluded;
    layer_state().excluded |= layer_bit(Layer::Autograd);
  }
  void leave() const { layer_state().excluded = before; }
  LayerMask before = 0;
};

// The library stays loaded for as long as the process.
void load_library(const std::string& path) {
  const void* handle = nullptr;
  {
    const ReleaseGil released;
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (handle) return;
  const std::string text = str("Could not load this library: ", path, "\n", dlerror());
  PyErr_SetString(PyExc_OSError, text.c_str());
  throw py::error_already_set();
}

}  // namespace

void init_library(PyObject* module) {
  init_library_objects(module);
  auto m = py::reinterpret_borrow<py::module_>(module);
  py::class_<BelowAutograd>(m, "_AutoDispatchBelowAutograd")
      .def(py::init<>())
      .def("__enter__", &BelowAutograd::enter)
      .def("__exit__", [](const BelowAutograd& self, const py::args&) { self.leave(); });
  m.def("_library_define", &define, "Defines an operator; gives its full name.");
  m.def("_library_undefine", [](const std::string& name) { defined(name).undefine(); });
  m.def("_library_set_kernel", &set_kernel);
  m.def("_library_clear_kernel", &clear_kernel);
  m.def("_library_set_default_kernel", &set_default_kernel);
  m.def("_library_clear_default_kernel",
        [](const std::string& name) { defined(name).clear_default_kernel(); });
  m.def("_library_set_layer_function", &set_layer_function);
  m.def("_library_clear_layer_function", [](const std::string& name, const std::string& layer) {
    defined(name).clear_layer_function(layer_named(layer));
  });
  m.def("_library_set_formula", &set_formula);
  m.def("_library_autograd", [](const std::string& name) { return defined(name).autograd_kind(); });
  m.def("_library_has_autocast",
        [](const std::string& name) { return defined(name).has_autocast(); });
  m.def("_library_place", [](const std::string& name) {
    const EntryInfo& entry = Dispatcher::instance().at(name).entry();
    return str(entry.file, ":", entry.line());
  });
  m.def("_library_set_fallback", [](const std::string& device, const py::function& function,
                                    const std::string& file, int line) {
    set_fallback(device_type_of(device), function.ptr(), place_of(file, line));
  });
  m.def("_library_clear_fallback",
        [](const std::string& device) { clear_fallback(device_type_of(device)); });
  m.def("_library_set_results_apart",
        [](const std::string& name) { defined(name).set_results_apart(); });
  m.def("_library_has_kernel", &has_kernel);
  m.def("_library_schema", &describe_schema);
  m.def("_library_overloads", &overloads);
  m.def("_library_devices", &device_names);
  m.def("_library_exclude_layer", &exclude_layer);
  m.def("_library_load", &load_library);
  m.def(
      "_library_stable_abi_functions",
      [] { return reinterpret_cast<uintptr_t>(&stable_abi_functions()); },
      "The address of the functions that the library of PyTorch's stable ABI is given.");
}

}  // namespace treadle::python
