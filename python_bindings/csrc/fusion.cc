// treadle.fusion: which calls wait, and how those that do are grouped.
//
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "aten/engine/deferral.h"
#include "aten/fusion/compiled.h"
#include "aten/fusion/describe.h"
#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/arguments/constants.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/module.h"
#include "python_bindings/csrc/tensors/tensor_object.h"

namespace py = pybind11;

namespace treadle::python {
namespace {

// Called for each block, and so without the layers of pybind11.
PyObject* exchange_here(PyObject*, PyObject* least) {
  return guarded([&] {
    const std::optional<int64_t> before = deferral_here();
    set_deferral_here(least == Py_None ? std::nullopt
                                       : std::optional(to_int("_exchange_deferral", least)));
    return before ? wrap(*before) : Py_NewRef(Py_None);
  });
}

py::tuple to_tuple(IntList list) {
  py::tuple t(list.size());
  for (size_t i = 0; i < list.size(); ++i) t[i] = py::int_(list[i]);
  return t;
}

py::object dtype_object(ScalarType t) { return py::reinterpret_steal<py::object>(wrap(t)); }

py::object to_object(fusion::Nothing) { return py::none(); }
py::object to_object(fusion::DescribedValue v) { return py::make_tuple(v.number); }
py::object to_object(const Scalar& s) { return py::reinterpret_steal<py::object>(wrap(s)); }
py::object to_object(ScalarType t) { return dtype_object(t); }
py::object to_object(const std::string& text) { return py::str(text); }
py::object to_object(const DimVector& list) { return py::list(to_tuple(list)); }

py::list arguments_of(const fusion::DescribedNode& node) {
  py::list arguments;
  for (const fusion::DescribedArgument& argument : node.arguments)
    std::visit([&](const auto& a) { arguments.append(to_object(a)); }, argument);
  return arguments;
}

// (shape, reads, nodes, bytes, bytes alone, way) of each group: reads are (value, dtype, sizes,
// strides, why, source), nodes (value, operator, arguments, dtype, strides, is_written), where an
// argument that is a value is a tuple with its number.
py::list describe(const py::object& tensor) {
  py::list groups;
  const Tensor looked_at = tensor.is_none() ? Tensor() : unwrap(tensor.ptr());
  for (const fusion::DescribedGroup& g : fusion::describe(looked_at)) {
    py::list reads, nodes;
    for (const fusion::DescribedRead& r : g.reads)
      reads.append(py::make_tuple(r.value, dtype_object(r.dtype), to_tuple(r.sizes),
                                  to_tuple(r.strides), r.why_apart, r.source));
    for (const fusion::DescribedNode& n : g.nodes)
      nodes.append(py::make_tuple(n.value, n.op, arguments_of(n), dtype_object(n.dtype),
                                  to_tuple(n.strides), n.is_written));
    groups.append(py::make_tuple(to_tuple(g.shape), reads, nodes, g.bytes, g.bytes_alone, g.way));
  }
  return groups;
}

}  // namespace

void init_fusion(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  static PyMethodDef functions[] = {
      {"_exchange_deferral", exchange_here, METH_O,
       "Defers this thread's calls whose results have at least so many elements; None: as all "
       "threads do. Returns what was set before."},
      {},
  };
  checked(PyModule_AddFunctions(module, functions));
  m.def("_set_deferral_everywhere", &set_deferral_everywhere, py::arg("least"),
        "The same for all threads that have no setting of their own.");
  m.def("_least_deferred", &least_deferred,
        "The least number of elements of a result for which this thread's calls are deferred.");
  m.attr("_DEFER_NEVER") = kDeferNever;
  m.def("_describe_pending", &describe, py::arg("tensor"),
        "The groups in which what is pending would be computed now.");
  m.def("_set_compiling", &fusion::set_compiling, py::arg("on"),
        "Whether somebody takes wanted loops and compiles them.");
  m.def("_is_compiling", &fusion::is_compiling, "What _set_compiling was given.");
  m.def("_take_wanted_loops", &fusion::take_wanted, py::arg("most"),
        "Takes sources of loops that are wanted.");
  m.def(
      "_set_compiled_loop",
      [](const std::string& source, uintptr_t function) {
        fusion::set_compiled(source, reinterpret_cast<void*>(function));
      },
      py::arg("source"), py::arg("function"), "Its function; 0: it could not be compiled.");
  m.def("_want_loops_again", &fusion::want_again,
        "In a child process: wants what was taken in its parent.");
  m.def(
      "_count_compiled_loops",
      [] {
        const fusion::CompiledCount count = fusion::count_compiled();
        return py::make_tuple(count.ready, count.wanted, count.failed);
      },
      "How many loops are compiled, wanted, and could not be compiled.");
}

}  // namespace treadle::python
