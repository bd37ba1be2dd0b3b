// The Python type Tensor: the conversion of a Tensor to its Python object and back.
//
//   return wrap(aten::add(unwrap(a), unwrap(b)));
//
// One tensor is one object as long as either side holds it. A plain object that Python drops is
// made anew at its next use. An object with attributes, weak references or a class of its own is
// kept alive by the tensor (Note [Who owns whom] in tensor_object.cc).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/tensor/tensor.h"
#include "python_bindings/csrc/python.h"

namespace treadle::python {

struct TensorObject {
  PyObject_HEAD Tensor tensor;  // undefined while the tensor owns this object
  TensorImpl* lent;             // then the tensor, borrowed
  PyObject* dict;
  PyObject* weakrefs;
};

extern PyTypeObject* tensor_type;

inline bool is_exact_tensor(PyObject* o) { return Py_IS_TYPE(o, tensor_type); }
inline bool is_tensor(PyObject* o) {
  return is_exact_tensor(o) || PyType_IsSubtype(Py_TYPE(o), tensor_type);
}

// Ends the tensor's ownership of `object` and returns the tensor. RuntimeError for an object that
// was never filled.
void reclaim(TensorObject* object);

// `o` must be a Tensor.
inline const Tensor& unwrap(PyObject* o) {
  auto* object = reinterpret_cast<TensorObject*>(o);
  if (!object->tensor.defined()) [[unlikely]]
    reclaim(object);
  return object->tensor;
}

// Lets the garbage collector track a tensor's object. It is not needed while the object leads to no
// other.
void track(PyObject* tensor);

// A new reference to the tensor's object; None for an undefined tensor.
PyObject* wrap(Tensor tensor);
// A new object of class `type` (a subclass of Tensor) for a tensor that has no object yet.
PyObject* wrap_as(PyTypeObject* type, Tensor tensor);

// Makes the type from the collected methods and attributes and adds it to the module.
void init_tensor_type(PyObject* module);

// Parts of the type, by subject, each in a file of its name.
void add_number_slots(std::vector<PyType_Slot>& slots);              // tensor_number.cc
void add_index_slots(std::vector<PyType_Slot>& slots);               // indexing.cc
void add_properties(std::vector<PyGetSetDef>& properties);           // tensor_properties.cc
void add_autograd_properties(std::vector<PyGetSetDef>& properties);  // autograd_tensor.cc
void add_tensor_methods(std::vector<PyMethodDef>& methods);          // tensor_methods.cc
void add_conversion_methods(std::vector<PyMethodDef>& methods);      // tensor_conversions.cc
void add_construct_methods(std::vector<PyMethodDef>& methods);       // construct_functions.cc
void add_autograd_methods(std::vector<PyMethodDef>& methods);        // autograd_tensor.cc
void add_override_methods(std::vector<PyMethodDef>& methods);        // overrides.cc
PyObject* new_tensor_object(PyTypeObject* type, PyObject* args,
                            PyObject* kwargs);  // construct_functions.cc

}  // namespace treadle::python
