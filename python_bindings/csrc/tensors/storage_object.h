// The Python type UntypedStorage: the bytes that tensors share, readable and writable through the
// buffer protocol.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/storage.h"
#include "core/tensor/tensor.h"
#include "python_bindings/csrc/python.h"

namespace treadle::python {

// The object of the storage. It is the same one as long as code holds it.
PyObject* wrap(const Storage& storage);
// The storage of such an object; null for other objects.
const Storage* as_storage(PyObject* object);
// A tensor of one dimension over all the bytes. RuntimeError when the bytes are not aligned for
// elements of the dtype.
Tensor tensor_over(const Storage& storage, ScalarType dtype);
// An object for an ndarray over the memory. It counts as a holder as long as it lives, because
// NumPy releases the buffer at once.
PyObject* wrap_for_array(const Storage& storage);
void init_storage_type(PyObject* module);

}  // namespace treadle::python
