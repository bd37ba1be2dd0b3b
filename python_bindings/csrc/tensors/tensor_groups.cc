// Lists of parallel tensors, grouped by device and dtype.
//
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/module.h"

namespace py = pybind11;

namespace treadle::python {
namespace {

constexpr const char* kName = "_group_tensors_by_device_and_dtype";

// {(device, dtype): ([part of each list], [place])}, in the order in which the first list has the
// kinds. Other lists are empty or as long as the first, and may hold None.
py::dict groups_of(const py::sequence& lists, bool with_indices) {
  check<ErrorKind::Runtime>(lists.size() > 0, OpName(kName),
                            "expected at least one list, got none");
  const py::sequence first = lists[0];
  const size_t count = first.size();
  std::vector<std::pair<Device, ScalarType>> kinds;
  std::vector<py::list> parts, places;
  for (size_t place = 0; place < count; ++place) {
    const py::object item = first[place];
    check<ErrorKind::Type>(is_tensor(item.ptr()), OpName(kName),
                           "expected tensors in the first list, got ", type_text(item.ptr()),
                           " at position ", place);
    const Tensor& tensor = unwrap(item.ptr());
    const std::pair<Device, ScalarType> kind(tensor.device(), tensor.dtype());
    const size_t group = std::find(kinds.begin(), kinds.end(), kind) - kinds.begin();
    if (group == kinds.size()) {
      kinds.push_back(kind);
      parts.emplace_back();
      places.emplace_back();
      for (size_t i = 0; i < lists.size(); ++i) parts.back().append(py::list());
    }
    for (size_t i = 0; i < lists.size(); ++i) {
      const py::sequence list = lists[i];
      if (list.size() == 0) continue;
      check<ErrorKind::Runtime>(list.size() == count, OpName(kName), "expected lists of ", count,
                                " tensors, as the first one, got ", list.size(), " in list ", i);
      py::list(parts[group][i]).append(list[place]);
    }
    if (with_indices) places[group].append(place);
  }
  py::dict result;
  for (size_t group = 0; group < kinds.size(); ++group) {
    const py::object device = py::reinterpret_steal<py::object>(wrap(kinds[group].first));
    const py::object dtype = py::reinterpret_steal<py::object>(wrap(kinds[group].second));
    result[py::make_tuple(device, dtype)] = py::make_tuple(parts[group], places[group]);
  }
  return result;
}

}  // namespace

void init_tensor_groups(PyObject* module) {
  py::reinterpret_borrow<py::module_>(module).def(
      kName, &groups_of, py::arg("tensorlistlist"), py::arg("with_indices"),
      "Lists of tensors split by device and dtype of the first list's.");
}

}  // namespace treadle::python
