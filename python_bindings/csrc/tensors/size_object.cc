// The type Size: a tuple of ints that can count the elements of its shape.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/arguments/constants.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/package_name.h"

namespace treadle::python {

PyTypeObject* size_type = nullptr;

namespace {

Object from_tuple(Object tuple) {
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple.get());
  Object size(size_type->tp_alloc(size_type, n));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(size.get(), i, new_ref(PyTuple_GET_ITEM(tuple.get(), i)));
  return size;
}

PyObject* size_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject* values = nullptr;
    if (kwargs && PyDict_GET_SIZE(kwargs))
      fail<ErrorKind::Type>(OpName("Size"), "expected no keyword arguments");
    if (!PyArg_ParseTuple(args, "|O:Size", &values)) throw PythonError{};
    if (!values) return wrap_size({});
    Object sequence(PySequence_Tuple(values));
    DimVector sizes;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.get()); ++i) {
      sizes.push_back(to_int("Size", PyTuple_GET_ITEM(sequence.get(), i)));
    }
    return wrap_size(sizes);
  });
}

PyObject* size_repr(PyObject* self) {
  return guarded([&] {
    Object list(PySequence_List(self));
    Object inner(PyObject_Repr(list.get()));
    return unicode(in_package("Size(") + std::string(utf8(inner.get())) + ")").release();
  });
}
PyObject* size_numel(PyObject* self, PyObject*) {
  return guarded([&] {
    Object product(PyLong_FromLong(1));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      product = Object(PyNumber_Multiply(product.get(), PyTuple_GET_ITEM(self, i)));
    }
    return product.release();
  });
}
PyObject* size_reduce(PyObject* self, PyObject*) {
  return guarded(
      [&] { return Object(Py_BuildValue("O(N)", size_type, PySequence_List(self))).release(); });
}
// A slice, a sum and a repetition of sizes are a Size again.
PyObject* size_subscript(PyObject* self, PyObject* key) {
  return guarded([&] {
    Object result(PyTuple_Type.tp_as_mapping->mp_subscript(self, key));
    return PySlice_Check(key) ? from_tuple(std::move(result)).release() : result.release();
  });
}
PyObject* size_concat(PyObject* self, PyObject* other) {
  return guarded([&] {
    return from_tuple(Object(PyTuple_Type.tp_as_sequence->sq_concat(self, other))).release();
  });
}
// Either may be the Size, the other another tuple.
PyObject* size_add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return size_concat(a, b);
}
PyObject* size_repeat(PyObject* self, Py_ssize_t count) {
  return guarded([&] {
    return from_tuple(Object(PyTuple_Type.tp_as_sequence->sq_repeat(self, count))).release();
  });
}

PyMethodDef methods[] = {
    {"numel", size_numel, METH_NOARGS, "The product of the sizes."},
    {"__reduce__", size_reduce, METH_NOARGS, nullptr},
    {},
};

}  // namespace

PyObject* wrap_ints(IntList values) {
  Object tuple(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     Object(PyLong_FromLongLong(values[i])).release());
  }
  return tuple.release();
}

PyObject* wrap_size(IntList sizes) {
  Object size(size_type->tp_alloc(size_type, static_cast<Py_ssize_t>(sizes.size())));
  for (size_t i = 0; i < sizes.size(); ++i) {
    PyTuple_SET_ITEM(size.get(), static_cast<Py_ssize_t>(i),
                     Object(PyLong_FromLongLong(sizes[i])).release());
  }
  return size.release();
}

void init_size(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, slot(&size_new)},       {Py_tp_repr, slot(&size_repr)},
      {Py_tp_methods, methods},           {Py_mp_subscript, slot(&size_subscript)},
      {Py_sq_concat, slot(&size_concat)}, {Py_nb_add, slot(&size_add)},
      {Py_sq_repeat, slot(&size_repeat)}, {},
  };
  PyType_Spec spec = {"treadle.Size", 0, 0, Py_TPFLAGS_DEFAULT, slots};
  Object bases(PyTuple_Pack(1, &PyTuple_Type));
  size_type = reinterpret_cast<PyTypeObject*>(
      Object(PyType_FromSpecWithBases(&spec, bases.get())).release());
  checked(PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(size_type)));
}

}  // namespace treadle::python
