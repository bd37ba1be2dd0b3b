// UntypedStorage. It keeps its storage alive for as long as anyone holds a view of it (an ndarray,
// a memoryview).
#include "python_bindings/csrc/storage_object.h"

#include "python_bindings/csrc/constants.h"
#include "python_bindings/csrc/convert.h"

namespace treadle::python {
namespace {

PyTypeObject* storage_type = nullptr;

struct StorageObject {
  PyObject_HEAD Storage storage;
};

const Storage& storage_of(PyObject* self) {
  return reinterpret_cast<StorageObject*>(self)->storage;
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<StorageObject*>(self)->storage.~Storage();
  type->tp_free(self);
  Py_DECREF(type);
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  return guarded([&] {
    const Storage& storage = storage_of(self);
    static char nothing;
    view->obj = nullptr;
    if (!storage->device().is_cpu()) {
      PyErr_SetString(PyExc_BufferError, "storage: expected a storage on the cpu");
      throw PythonError{};
    }
    void* data = storage->nbytes() ? storage->data() : &nothing;
    return checked(PyBuffer_FillInfo(view, self, data, static_cast<Py_ssize_t>(storage->nbytes()),
                                     !storage->writable(), flags));
  });
}

PyObject* data_ptr(PyObject* self, PyObject*) {
  return PyLong_FromVoidPtr(storage_of(self)->data());
}
PyObject* nbytes(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(storage_of(self)->nbytes());
}
Py_ssize_t length(PyObject* self) { return static_cast<Py_ssize_t>(storage_of(self)->nbytes()); }
PyObject* device(PyObject* self, void*) {
  return guarded([&] { return wrap(storage_of(self)->device()); });
}
PyObject* represent(PyObject* self) {
  return PyUnicode_FromFormat("<UntypedStorage of %zu bytes on %s>", storage_of(self)->nbytes(),
                              to_string(storage_of(self)->device()).c_str());
}
PyObject* resize(PyObject* self, PyObject* size) {
  return guarded([&] {
    const int64_t bytes = to_int("resize_", size);
    check<ErrorKind::Value>(bytes >= 0, "resize_: expected a size >= 0, got ", bytes);
    storage_of(self)->resize(static_cast<size_t>(bytes));
    return new_ref(self);
  });
}
// Two objects over the same bytes are equal.
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (!Py_IS_TYPE(b, storage_type) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return to_bool((storage_of(a) == storage_of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* self) { return _Py_HashPointer(storage_of(self).get()); }

PyMethodDef methods[] = {
    {"data_ptr", data_ptr, METH_NOARGS, "Address of the first byte."},
    {"nbytes", nbytes, METH_NOARGS, "Number of bytes."},
    {"size", nbytes, METH_NOARGS, "Number of bytes."},
    {"resize_", resize, METH_O, "Changes the number of bytes, keeping what fits."},
    {},
};
PyGetSetDef properties[] = {{"device", device, nullptr, nullptr, nullptr}, {}};

}  // namespace

PyObject* wrap(const Storage& storage) {
  auto* object = PyObject_New(StorageObject, storage_type);
  if (!object) throw PythonError{};
  new (&object->storage) Storage(storage);
  return reinterpret_cast<PyObject*>(object);
}

void init_storage_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, slot(&deallocate)},
      {Py_bf_getbuffer, slot(&get_buffer)},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {Py_sq_length, slot(&length)},
      {Py_tp_repr, slot(&represent)},
      {Py_tp_richcompare, slot(&compare)},
      {Py_tp_hash, slot(&hash)},
      {},
  };
  PyType_Spec spec = {"treadle.UntypedStorage", sizeof(StorageObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  storage_type = reinterpret_cast<PyTypeObject*>(Object(PyType_FromSpec(&spec)).release());
  checked(
      PyModule_AddObjectRef(module, "UntypedStorage", reinterpret_cast<PyObject*>(storage_type)));
}

}  // namespace treadle::python
