// The Python type UntypedStorage: the bytes that tensors share, readable and writable through the
// buffer protocol.
#pragma once

#include "core/tensor/storage.h"
#include "core/tensor/tensor.h"
#include "python_bindings/csrc/python.h"

namespace treadle::python {

// The object that stands for the storage: the same one for as long as somebody holds it.
PyObject* wrap(const Storage& storage);
// The storage of such an object; null for anything else.
const Storage* as_storage(PyObject* object);
// A tensor of one dimension over all the bytes. RuntimeError when they lie at a place where
// elements of the dtype may not.
Tensor tensor_over(const Storage& storage, ScalarType dtype);
// One for an ndarray over the memory, which counts as its holder for as long as it lives: NumPy
// lets go of the buffer at once.
PyObject* wrap_for_array(const Storage& storage);
void init_storage_type(PyObject* module);

}  // namespace treadle::python
