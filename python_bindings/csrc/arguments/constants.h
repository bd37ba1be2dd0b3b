// The small immutable objects of the API: dtype, device, layout, memory_format and Size.
//
// Each dtype, layout and memory format is one object for the life of the process, so `x.dtype is
// treadle.float32` holds.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/base/array_ref.h"
#include "core/base/device.h"
#include "core/base/scalar_type.h"
#include "python_bindings/csrc/python.h"

namespace treadle::python {

extern PyTypeObject* dtype_type;
extern PyTypeObject* device_type;
extern PyTypeObject* layout_type;
extern PyTypeObject* memory_format_type;
extern PyTypeObject* size_type;

struct DtypeObject {
  PyObject_HEAD ScalarType value;
};
struct DeviceObject {
  PyObject_HEAD Device value;
};
struct LayoutObject {
  PyObject_HEAD Layout value;
};
struct MemoryFormatObject {
  PyObject_HEAD MemoryFormat value;
};

// New references.
PyObject* wrap(ScalarType value);
PyObject* wrap(Device value);
PyObject* wrap(Layout value);
PyObject* wrap(MemoryFormat value);
PyObject* wrap_size(IntList sizes);
PyObject* wrap_ints(IntList values);  // a plain tuple

// The accepted objects: a dtype, or one of Python's types bool, int, float, complex; a device, its
// name or a CUDA index.
std::optional<ScalarType> as_dtype(PyObject* object);
bool is_device(PyObject* object);
Device to_device(PyObject* object);  // is_device(object) holds; RuntimeError for an unknown name

void init_constants(PyObject* module);

}  // namespace treadle::python
