// NumPy arrays and buffers as tensors, and back, without copying. Both sides see each other's
// writes.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"
#include "python_bindings/csrc/python.h"

namespace treadle::python {

// A tensor over the memory of anything with the buffer protocol and a format that is a dtype. It
// takes the array's shape and strides, including negative ones. Warns once about a read-only one if
// `warn`.
Tensor tensor_from_numpy(PyObject* array, bool warn);
// frombuffer(): the bytes of any buffer as one dimension of `dtype`.
Tensor tensor_from_buffer(PyObject* buffer, ScalarType dtype, int64_t count, int64_t offset);
// An ndarray over the tensor's memory; `force` first detaches, and copies from another device.
PyObject* tensor_to_numpy(const Tensor& t, bool force);

}  // namespace treadle::python
