// The Python type UntypedStorage: the bytes that tensors share, readable and writable through the
// buffer protocol.
#pragma once

#include "core/storage.h"
#include "python_bindings/csrc/python.h"

namespace treadle::python {

PyObject* wrap(const Storage& storage);
// One for an ndarray over the memory, which counts as its holder for as long as it lives: NumPy
// lets go of the buffer at once.
PyObject* wrap_for_array(const Storage& storage);
void init_storage_type(PyObject* module);

}  // namespace treadle::python
