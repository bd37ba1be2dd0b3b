// Tensors from Python data: numbers, nested lists, NumPy arrays and scalars, other tensors.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "core/tensor/tensor.h"
#include "python_bindings/csrc/python.h"

namespace treadle::python {

// A new tensor with a copy of `data`. Without `dtype`, it has the dtype of the data; Python floats
// have the default dtype.
Tensor tensor_from_data(PyObject* data, std::optional<ScalarType> dtype, Device device);
// The tensor itself if its dtype and device are already right.
Tensor convert_to(const Tensor& t, std::optional<ScalarType> dtype, std::optional<Device> device,
                  bool copy = false);

// tensor(), as_tensor(), from_numpy(), ... for the module.
void add_construct_functions(std::vector<PyMethodDef>& functions);

}  // namespace treadle::python
