// UntypedStorage. It keeps its storage alive, and its bytes in place, as long as a view of it
// exists (an ndarray, a memoryview).
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/tensors/storage_object.h"
#include "core/tensor/alignment.h"

#include <structmember.h>

#include <cstring>
#include <unordered_map>

#include "core/tensor/shared_memory.h"
#include "core/threads/quiescence.h"
#include "python_bindings/csrc/arguments/constants.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/tensors/tensor_object.h"

namespace treadle::python {
namespace {

PyTypeObject* storage_type = nullptr;

struct StorageObject {
  PyObject_HEAD Storage storage;
  bool holds;  // for an ndarray, which keeps the object but not the buffer that it asks for
  PyObject* dict;
  PyObject* weakrefs;
};

// The object that stands for a storage, while there is one: tensors over one storage give the same.
// The interpreter's lock guards it.
std::unordered_map<const StorageImpl*, PyObject*>& objects() {
  static auto* all = new std::unordered_map<const StorageImpl*, PyObject*>;
  return *all;
}

const Storage& storage_of(PyObject* self) {
  return reinterpret_cast<StorageObject*>(self)->storage;
}

// A new object of a class over a storage.
PyObject* make(PyTypeObject* type, const Storage& storage) {
  PyObject* object = Object(type->tp_alloc(type, 0)).release();
  auto* made = reinterpret_cast<StorageObject*>(object);
  new (&made->storage) Storage(storage);
  made->holds = false;
  return object;
}
// The object stands for its storage from now on.
PyObject* make_known(PyTypeObject* type, const Storage& storage) {
  PyObject* object = make(type, storage);
  objects().emplace(storage.get(), object);
  return object;
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  auto* object = reinterpret_cast<StorageObject*>(self);
  PyObject_GC_UnTrack(self);
  const auto known = objects().find(object->storage.get());
  if (known != objects().end() && known->second == self) objects().erase(known);
  if (object->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(object->dict);
  if (object->holds) object->storage->let_go(Holder::Buffer);
  object->storage.~Storage();
  type->tp_free(self);
  Py_DECREF(type);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<StorageObject*>(self)->dict);
  Py_VISIT(Py_TYPE(self));
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<StorageObject*>(self)->dict);
  return 0;
}

void require_memory(const Storage& storage) {
  check<ErrorKind::Runtime>(storage->has_memory(), OpName("storage"),
                            "expected a storage with memory, got that of a tensor that "
                            "stands for others and has none");
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
    require_memory(storage);
    storage->data();  // raises what computing pending bytes raises
    storage->hold(Holder::Buffer);
    void* data = storage->nbytes() ? storage->data() : &nothing;
    const int result = PyBuffer_FillInfo(
        view, self, data, static_cast<Py_ssize_t>(storage->nbytes()), !storage->writable(), flags);
    if (result < 0) storage->let_go(Holder::Buffer);
    return checked(result);
  });
}
void release_buffer(PyObject* self, Py_buffer*) { storage_of(self)->let_go(Holder::Buffer); }

PyObject* data_ptr(PyObject* self, PyObject*) {
  return guarded([&] {
    if (storage_of(self)->device().is_meta()) return PyLong_FromLong(0);
    require_memory(storage_of(self));
    storage_of(self)->set_told();
    return PyLong_FromVoidPtr(storage_of(self)->data());
  });
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
  return guarded(
      [&] {
        const int64_t bytes = to_int("resize_", size);
        check<ErrorKind::Value>(bytes >= 0, OpName("resize_"), "expected a size >= 0, got ", bytes);
        const Quiescence quiet("resize_");
        storage_of(self)->resize(static_cast<size_t>(bytes));
        return new_ref(self);
      },
      "resize_");
}

// ---- memory shared with other processes

size_t to_size(const char* name, PyObject* number) {
  const int64_t bytes = to_int(name, number);
  check<ErrorKind::Value>(bytes >= 0, OpName(name), "expected a size >= 0, got ", bytes);
  return static_cast<size_t>(bytes);
}

void share_in_quiet(const Storage& storage) {
  if (treadle::is_shared(storage)) return;
  const Quiescence quiet("share_memory_");
  treadle::share_memory(storage);
}
PyObject* share_memory(PyObject* self, PyObject*) {
  return guarded([&] {
    share_in_quiet(storage_of(self));
    return new_ref(self);
  });
}
PyObject* is_shared(PyObject* self, PyObject*) {
  return guarded([&] { return to_bool(treadle::is_shared(storage_of(self))); });
}
PyObject* share_descriptor(PyObject* self, PyObject*) {
  return guarded([&] {
    const Storage& storage = storage_of(self);
    share_in_quiet(storage);
    PyObject* pair = Py_BuildValue("(in)", shared_descriptor(storage),
                                   static_cast<Py_ssize_t>(storage->nbytes()));
    if (!pair) throw PythonError{};
    return pair;
  });
}
PyObject* new_using_descriptor(PyObject*, PyObject* size) {
  return guarded([&] { return wrap(new_shared(to_size("_new_using_fd_cpu", size))); });
}
PyObject* new_from_descriptor(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int descriptor = -1;
    PyObject* size = nullptr;
    if (!PyArg_ParseTuple(args, "iO:_new_shared_fd_cpu", &descriptor, &size)) throw PythonError{};
    return wrap(open_shared(descriptor, to_size("_new_shared_fd_cpu", size)));
  });
}
// ---- made by programs

// A number of bytes, or the bytes themselves: a sequence of numbers, or a buffer.
Storage storage_from(PyObject* content, Device device) {
  if (!content) return make_intrusive<StorageImpl>(0, device);
  if (PyIndex_Check(content))
    return make_intrusive<StorageImpl>(to_size("UntypedStorage", content), device);
  check<ErrorKind::Type>(PySequence_Check(content), OpName("UntypedStorage"),
                         "expected a number of bytes or a sequence of them, got ",
                         Py_TYPE(content)->tp_name);
  check<ErrorKind::Runtime>(device.is_cpu() || device.is_meta(), OpName("UntypedStorage"),
                            "expected the cpu for bytes that are given, got ", to_string(device));
  const Object bytes(call_python(PyObject_CallFunctionObjArgs,
                                 reinterpret_cast<PyObject*>(&PyByteArray_Type), content, nullptr));
  const auto size = static_cast<size_t>(PyByteArray_GET_SIZE(bytes.get()));
  auto storage = make_intrusive<StorageImpl>(size, device);
  if (size && device.is_cpu())
    std::memcpy(storage->data(), PyByteArray_AS_STRING(bytes.get()), size);
  return storage;
}
PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"", "device", nullptr};
    PyObject *content = nullptr, *device = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:UntypedStorage", const_cast<char**>(names),
                                     &content, &device))
      throw PythonError{};
    const bool named = device && device != Py_None;
    check<ErrorKind::Type>(!named || is_device(device), OpName("UntypedStorage"),
                           "expected device to be a device or its name, got ",
                           device ? Py_TYPE(device)->tp_name : "");
    return make_known(type, storage_from(content, named ? to_device(device) : kCPU));
  });
}
PyObject* same_bytes(PyObject* type, PyObject* other) {
  return guarded([&] {
    check<ErrorKind::Type>(PyObject_TypeCheck(other, storage_type), OpName("_over"),
                           "expected an UntypedStorage, got ", Py_TYPE(other)->tp_name);
    return make(reinterpret_cast<PyTypeObject*>(type), storage_of(other));
  });
}
PyObject* address(PyObject* self, void*) { return PyLong_FromVoidPtr(storage_of(self).get()); }

PyObject* as_tensor(PyObject* self, PyObject* dtype) {
  return guarded([&] {
    const auto type = as_dtype(dtype);
    check<ErrorKind::Type>(type.has_value(), OpName("_as_tensor"), "expected a dtype, got ",
                           Py_TYPE(dtype)->tp_name);
    return wrap(tensor_over(storage_of(self), *type));
  });
}
PyObject* what_holds_it(PyObject* self, PyObject*) {
  return guarded([&] { return unicode(storage_of(self)->what_holds_it()).release(); });
}
// Programs that held weak references call it; here they stay good by themselves.
PyObject* fix_weakref(PyObject*, PyObject*) { return none(); }

// Two objects over the same bytes are equal.
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (!PyObject_TypeCheck(b, storage_type) || (op != Py_EQ && op != Py_NE))
    Py_RETURN_NOTIMPLEMENTED;
  return to_bool((storage_of(a) == storage_of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* self) { return _Py_HashPointer(storage_of(self).get()); }

PyMethodDef methods[] = {
    {"data_ptr", data_ptr, METH_NOARGS, "Address of the first byte."},
    {"nbytes", nbytes, METH_NOARGS, "Number of bytes."},
    {"size", nbytes, METH_NOARGS, "Number of bytes."},
    {"resize_", resize, METH_O, "Changes the number of bytes, keeping what fits."},
    {"share_memory_", share_memory, METH_NOARGS,
     "Moves the bytes into memory that other processes can share."},
    {"is_shared", is_shared, METH_NOARGS, "Whether the bytes lie in memory that is shared."},
    {"_share_fd_cpu_", share_descriptor, METH_NOARGS,
     "Shares the memory; its descriptor, which remains the storage's, and the number of bytes."},
    {"_new_using_fd_cpu", new_using_descriptor, METH_O | METH_STATIC,
     "A new storage in shared memory, of so many bytes."},
    {"_new_shared_fd_cpu", new_from_descriptor, METH_VARARGS | METH_STATIC,
     "The storage over the memory of a descriptor, which it takes over."},
    {"_as_tensor", as_tensor, METH_O, "A tensor of one dimension over all the bytes."},
    {"_what_holds_it", what_holds_it, METH_NOARGS,
     "What keeps the memory at its place, in words; empty where nothing does."},
    {"_fix_weakref", fix_weakref, METH_NOARGS, "Nothing: a weak reference stays good by itself."},
    {"_over", same_bytes, METH_O | METH_CLASS, "An object of this class over another's bytes."},
    {},
};
PyGetSetDef properties[] = {
    {"device", device, nullptr, nullptr, nullptr},
    {"_cdata", address, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};
PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(StorageObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(StorageObject, weakrefs), READONLY, nullptr},
    {},
};

}  // namespace

PyObject* wrap(const Storage& storage) {
  const auto known = objects().find(storage.get());
  return known != objects().end() ? new_ref(known->second) : make_known(storage_type, storage);
}

Tensor tensor_over(const Storage& storage, ScalarType dtype) {
  require_aligned(*storage, dtype);
  const int64_t elements = static_cast<int64_t>(storage->nbytes()) / item_size(dtype);
  return Tensor(make_intrusive<TensorImpl>(storage, dtype, IntList(&elements, 1)));
}

const Storage* as_storage(PyObject* object) {
  return PyObject_TypeCheck(object, storage_type) ? &storage_of(object) : nullptr;
}

PyObject* wrap_for_array(const Storage& storage) {
  PyObject* object = make(storage_type, storage);
  storage->hold(Holder::Buffer);
  reinterpret_cast<StorageObject*>(object)->holds = true;
  return object;
}

void init_storage_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, slot(&create)},
      {Py_tp_dealloc, slot(&deallocate)},
      {Py_bf_getbuffer, slot(&get_buffer)},
      {Py_bf_releasebuffer, slot(&release_buffer)},
      {Py_tp_traverse, slot(&traverse)},
      {Py_tp_clear, slot(&clear)},
      {Py_tp_members, members},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {Py_sq_length, slot(&length)},
      {Py_tp_repr, slot(&represent)},
      {Py_tp_richcompare, slot(&compare)},
      {Py_tp_hash, slot(&hash)},
      {},
  };
  PyType_Spec spec = {"treadle.UntypedStorage", sizeof(StorageObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  storage_type = reinterpret_cast<PyTypeObject*>(Object(PyType_FromSpec(&spec)).release());
  checked(
      PyModule_AddObjectRef(module, "UntypedStorage", reinterpret_cast<PyObject*>(storage_type)));
}

}  // namespace treadle::python
