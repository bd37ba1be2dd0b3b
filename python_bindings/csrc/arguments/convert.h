// Conversions from Python objects to the arguments of operators, and the rules for each kind of
// value.
//
// An int is an int, a NumPy integer or any object with __index__, but not a bool and never a float.
// NaN in place of a size is a TypeError. `op` names the function in messages.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "core/device/generator.h"
#include "core/tensor/tensor.h"
#include "python_bindings/csrc/arguments/constants.h"
#include "python_bindings/csrc/python.h"
#include "python_bindings/csrc/tensors/tensor_object.h"

namespace treadle::python {

bool is_numpy_scalar(PyObject* o);
bool is_numpy_array(PyObject* o);
// bool, int, float, complex or a NumPy scalar.
bool is_number_slow(PyObject* o);
inline bool is_number(PyObject* o) {
  return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || is_number_slow(o);
}
bool is_int(PyObject* o);
// An int, a float or a real NumPy scalar: float() converts these without a surprise.
bool is_real(PyObject* o);
bool is_bool(PyObject* o);
bool is_generator(PyObject* o);
// A tensor of one element that can stand for a number: 0-dim and without gradient.
bool is_number_tensor(const Tensor& t);

// TypeError when the object is not an int; OverflowError when it does not fit 64 bits.
int64_t to_int(const char* op, PyObject* o);
double to_double(const char* op, PyObject* o);
bool to_boolean(PyObject* o);
Scalar to_scalar(const char* op, PyObject* o);
const Generator& to_generator(PyObject* o);

// The one element of a tensor. RuntimeError if there are several, or none, or on the meta device.
Scalar element(const char* op, const Tensor& t);
PyObject* wrap(const Scalar& value);
PyObject* wrap(const Generator& value);
// A 0-dim tensor that takes part in type promotion like a Python number.
Tensor number_tensor(const Scalar& value);
// A number or a NumPy array or scalar as a tensor; undefined for other objects. Array memory is
// shared.
Tensor operand_tensor(const char* op, PyObject* o);

// The type of an argument in messages: "Tensor", "float", "tuple of (int, str)".
std::string type_text(PyObject* o);

}  // namespace treadle::python
