// Tensors of other layouts than strided, taken apart and put together: what copying, pickling and
// sending to other processes is written with in Python.
//
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "core/tensor/layout_tensor.h"
#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/module.h"

namespace py = pybind11;

namespace treadle::python {
namespace {

template <class T>
py::dict named(const std::vector<std::string>& names, const std::vector<T>& values) {
  py::dict all;
  for (size_t i = 0; i < names.size(); ++i) all[py::str(names[i])] = py::cast(values[i]);
  return all;
}

py::tuple contents(const Tensor& t) {
  const auto all = contents_of(t);
  const LayoutInfo& info = info_of(t.layout());
  return py::make_tuple(named(info.parts, all->parts), named(info.fields, all->fields));
}

Tensor made_of(const py::handle& layout, const std::vector<int64_t>& size,
               std::vector<Tensor> parts, std::vector<int64_t> fields) {
  check<ErrorKind::Type>(Py_IS_TYPE(layout.ptr(), layout_type), OpName("_layout_tensor"),
                         "expected a layout, got ", type_text(layout.ptr()));
  const Layout value = reinterpret_cast<LayoutObject*>(layout.ptr())->value;
  const LayoutInfo& info = info_of(value);
  const std::string name = str(name_of(value), "_tensor");  // as programs call its maker
  LayoutContents all{std::move(parts), std::move(fields)};
  check<ErrorKind::Value>(
      all.parts.size() == info.parts.size() && all.fields.size() == info.fields.size(),
      OpName(name), "expected ", info.parts.size(), " parts and ", info.fields.size(),
      " fields of a ", name_of(value), " tensor, got ", all.parts.size(), " and ",
      all.fields.size());
  if (info.check) info.check(name.c_str(), size, all);
  return layout_tensor(value, size, std::move(all));
}

bool any_of_other_layout(const py::list& tensors) {
  for (const py::handle t : tensors)
    if (is_tensor(t.ptr()) && !unwrap(t.ptr()).is_strided()) return true;
  return false;
}

}  // namespace

void init_layouts(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.def("_layout_contents", &contents, py::arg("tensor"),
        "The parts and the fields of a tensor of another layout than strided, by name.");
  m.def("_any_of_other_layout", &any_of_other_layout, py::arg("tensors"),
        "Whether a list has a tensor of another layout than strided.");
  m.def("_layout_values", &values_of, py::arg("tensor"),
        "The part that holds the elements, which autograd records.");
  m.def("_with_layout_values", &with_values, py::arg("tensor"), py::arg("values"),
        "A tensor of the same layout, sizes and places, with other elements.");
  m.def("_layout_tensor", &made_of, py::arg("layout"), py::arg("size"), py::arg("parts"),
        py::arg("fields"), "A tensor of a layout, made of parts and fields. They are checked.");
}

}  // namespace treadle::python
