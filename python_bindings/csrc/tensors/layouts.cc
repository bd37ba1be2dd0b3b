// Tensors of other layouts than strided, taken apart and put together: what copying, pickling and
// sending to other processes is written with in Python.
//
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "core/tensor/layout_tensor.h"
#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/module.h"

namespace py = pybind11;

namespace treadle::python {
namespace {

py::tuple contents(const Tensor& t) {
  const auto all = contents_of(t);
  return py::make_tuple(py::cast(all->parts), py::cast(all->fields));
}

Tensor made_of(const py::handle& layout, const std::vector<int64_t>& size,
               std::vector<Tensor> parts, std::vector<int64_t> fields) {
  const char* const name = "_layout_tensor";
  check<ErrorKind::Type>(Py_IS_TYPE(layout.ptr(), layout_type), OpName(name),
                         "expected a layout, got ", type_text(layout.ptr()));
  const Layout value = reinterpret_cast<LayoutObject*>(layout.ptr())->value;
  const LayoutInfo& info = info_of(value);
  LayoutContents all{std::move(parts), std::move(fields)};
  check<ErrorKind::Value>(
      all.parts.size() == info.parts.size() && all.fields.size() == info.fields.size(),
      OpName(name), "expected ", info.parts.size(), " parts and ", info.fields.size(),
      " fields of a ", name_of(value), " tensor, got ", all.parts.size(), " and ",
      all.fields.size());
  if (info.check) info.check(name, size, all);
  return layout_tensor(value, size, std::move(all));
}

}  // namespace

void init_layouts(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.def("_layout_contents", &contents, py::arg("tensor"),
        "The parts and the fields of a tensor of another layout than strided.");
  m.def("_layout_tensor", &made_of, py::arg("layout"), py::arg("size"), py::arg("parts"),
        py::arg("fields"), "A tensor of a layout, made of parts and fields. They are checked.");
}

}  // namespace treadle::python
