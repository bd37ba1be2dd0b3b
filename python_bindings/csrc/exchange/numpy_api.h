// The part of NumPy's C interface that is used here: an array's fields, and three of its functions.
//
// NumPy gives its functions as a table in a capsule, so that neither building nor loading the
// extension needs NumPy. The places in the table and the fields below are part of NumPy's stable
// binary interface, and are the same in NumPy 1 and 2.
// Source: https://numpy.org/doc/stable/reference/c-api/types-and-structures.html
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/array_ref.h"
#include "core/base/scalar_type.h"
#include "python_bindings/csrc/python.h"

namespace treadle::python::numpy {

struct Dtype {
  PyObject_HEAD PyTypeObject* scalar;
  char kind, type, byte_order, flags;
  int number;  // of the element type, of those in `number_of`
};

struct Array {
  PyObject_HEAD char* data;
  int dimensions;
  Py_ssize_t* sizes;
  Py_ssize_t* strides;  // in bytes
  PyObject* base;
  Dtype* dtype;
  int flags;
};
constexpr int kWritable = 0x0400;  // a bit of Array::flags

// NumPy's number for a dtype; none if NumPy lacks it.
std::optional<int> number_of(ScalarType dtype);
// The dtype of an array's elements; none for a type or a byte order that is not a dtype's.
std::optional<ScalarType> dtype_of(const Dtype& dtype);

// Imports NumPy, where that was not done. A thread that imports can be ended by the end of the
// program, and must not own objects then, so that make_array() comes later. Throws PythonError when
// NumPy cannot be imported.
void ensure_imported();

// After ensure_imported(): an array over memory that `owner` keeps. It takes over the reference to
// `owner`. `strides` are in bytes.
PyObject* make_array(int number, IntList sizes, IntList strides, void* data, bool writable,
                     PyObject* owner);

}  // namespace treadle::python::numpy
