// pybind11's conversions of the library's small types. pybind11 binds only code that is not hot.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include "python_bindings/csrc/arguments/constants.h"
#include "python_bindings/csrc/tensors/tensor_object.h"

namespace pybind11::detail {

template <>
struct type_caster<treadle::ScalarType> {
  PYBIND11_TYPE_CASTER(treadle::ScalarType, const_name("treadle.dtype"));
  bool load(handle source, bool) {
    const auto dtype = treadle::python::as_dtype(source.ptr());
    if (dtype) value = *dtype;
    return dtype.has_value();
  }
  static handle cast(treadle::ScalarType dtype, return_value_policy, handle) {
    return treadle::python::wrap(dtype);
  }
};

template <>
struct type_caster<treadle::Tensor> {
  PYBIND11_TYPE_CASTER(treadle::Tensor, const_name("treadle.Tensor"));
  bool load(handle source, bool) {
    if (!treadle::python::is_tensor(source.ptr())) return false;
    value = treadle::python::unwrap(source.ptr());
    return true;
  }
  static handle cast(const treadle::Tensor& t, return_value_policy, handle) {
    return treadle::python::wrap(t);
  }
};

}  // namespace pybind11::detail
