// The dispatcher's facts for `explain`: those of an operator, its layers, and the kernel of each
// cell with its source location.
//
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "core/dispatch/dispatcher.h"
#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/module.h"

namespace py = pybind11;

namespace treadle::python {
namespace {

py::dict place(const KernelOrigin& p) {
  py::dict d;
  d["source"] = std::string(name_of(p.source));
  d["file"] = p.file;
  d["line"] = p.line;
  d["name"] = p.name;
  return d;
}

// The layers with a kernel, outermost first.
py::list layers(const Operator& op) {
  py::list found;
  for (int i = 0; i < kNumLayers; ++i) {
    if (!(op.layers() & (1u << i))) continue;
    const auto layer = static_cast<Layer>(i);
    py::dict d = place(op.layer_place(layer));
    d["layer"] = std::string(name_of(layer));
    found.append(d);
  }
  return found;
}

// Every filled cell of the kernel table.
py::list cells(const Operator& op) {
  py::list found;
  if (!op.has_table()) return found;
  // Behind the devices are the kernels that serve all of them.
  for (int device = 0; device <= kMaxDeviceTypes; ++device) {
    for (int layout = 0; layout < num_layouts(); ++layout) {
      const KernelRow* row =
          op.table().row(static_cast<DeviceType>(device), static_cast<Layout>(layout));
      if (!row) continue;
      for (int dtype = 0; dtype < kNumScalarTypes; ++dtype) {
        const auto at = static_cast<size_t>(dtype);
        if (!row->kernels[at] && !row->boxed[at]) continue;
        py::dict d = row->places[at] ? place(*row->places[at]) : py::dict();
        d["device"] = std::string(name_of(static_cast<DeviceType>(device)));
        d["layout"] = std::string(name_of(static_cast<Layout>(layout)));
        d["dtype"] = std::string(name_of(static_cast<ScalarType>(dtype)));
        found.append(d);
      }
    }
  }
  return found;
}

py::dict describe(const std::string& name) {
  const Operator& op = Dispatcher::instance().at(name);
  const OperatorInfo& info = op.info();
  const EntryInfo& entry = op.entry();
  py::dict d;
  d["name"] = info.name;
  d["base_name"] = info.base_name;
  d["entry"] = entry.op->info().name;
  d["schema"] = info.schema;
  d["kind"] = std::string(name_of(entry.kind));
  d["file"] = entry.file;
  d["line"] = entry.line();
  py::list checks;
  for (const char* condition : entry.checks) checks.append(condition);
  d["checks"] = checks;
  d["shape"] = entry.shape;
  d["layers"] = layers(op);
  d["is_seen"] = entry.seen != Seen::Never;
  d["cells"] = cells(op);
  return d;
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const Operator* op : Dispatcher::instance().operators()) names.emplace_back(op->info().name);
  return names;
}

// Layers that a call with such a tensor goes through on this thread.
std::vector<std::string> active_layers(const std::string& name, const py::args& tensors) {
  LayerMask mask = 0;
  for (const py::handle& t : tensors) {
    if (is_tensor(t.ptr())) mask |= unwrap(t.ptr()).layers();
  }
  const LayerMask active = Dispatcher::instance().at(name).active_layers(mask);
  std::vector<std::string> found;
  for (int i = 0; i < kNumLayers; ++i) {
    if (active & (1u << i)) found.emplace_back(name_of(static_cast<Layer>(i)));
  }
  return found;
}

// The operator of a Python call. `name` with `method` is that of a method, whose object is the
// first of `args`.
std::string resolve(const std::string& name, bool method, const py::tuple& args,
                    const py::dict& kwargs) {
  const Binding& binding = find_binding(name);
  check<ErrorKind::Runtime>(method ? binding.method != nullptr : binding.function != nullptr,
                            OpName("explain"), "expected the name of ",
                            method ? "a method" : "a function", " of the library, got ", name);
  if (!method) return resolve_operator(binding, nullptr, args.ptr(), kwargs.ptr());
  check<ErrorKind::Type>(py::len(args) > 0, OpName(str(name, "()")),
                         "expected the tensor whose method it is");
  const Object rest(PyTuple_GetSlice(args.ptr(), 1, PyTuple_GET_SIZE(args.ptr())));
  return resolve_operator(binding, PyTuple_GET_ITEM(args.ptr(), 0), rest.get(), kwargs.ptr());
}

// Python names of the library: (name, module, is method, is function, operators).
py::list bindings() {
  py::list found;
  for (size_t s = 0; s < binding_shard_count; ++s) {
    for (size_t i = 0; i < binding_shards[s]->count; ++i) {
      const Binding& b = binding_shards[s]->bindings[i];
      py::list operators;
      for (int k = 0; b.signatures && k < b.signatures->count; ++k)
        operators.append(b.operators[k]);
      found.append(
          py::make_tuple(b.name, b.module, b.method != nullptr, b.function != nullptr, operators));
    }
  }
  return found;
}

}  // namespace

void init_dispatcher(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.def("_operator_names", &operator_names,
        "Every operator's name, \"aten::add.Tensor\", one for each form.");
  m.def("_describe_operator", &describe, "What the library knows about an operator.");
  m.def("_active_layers", &active_layers, "Layers that a call with these tensors goes through.");
  m.def("_resolve_operator", &resolve, "The operator that a Python call goes to.");
  m.def("_bindings", &bindings, "Python names of the operators.");
  m.def("_dispatch_dump",
        [](const std::string& name) { return Dispatcher::instance().dump(name); });
  m.def("_dispatch_check_invariants", [] { return Dispatcher::instance().check_invariants(); });
  m.def(
      "_take_registration_errors", [] { return Dispatcher::instance().take_registration_errors(); },
      "What was refused of the registrations of libraries loaded since the last call.");
  m.def("_dispatch_dangling_kernels", [] { return Dispatcher::instance().dangling_kernels(); });
}

}  // namespace treadle::python
