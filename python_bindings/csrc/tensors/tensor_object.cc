// The lifetime of Tensor objects.
//
// Note [Who owns whom] An object normally holds a reference to its tensor, and the tensor holds a
// bare pointer back. The last Python reference to an object may disappear while C++ still holds the
// tensor (a parameter saved for backward, a `grad`). Then there are two cases. An object without
// state of its own is freed, and made anew when the tensor returns to Python. An object with
// attributes, weak references or a class of its own must return unchanged. Its one reference passes
// to the tensor (PythonSlot::owned), and it keeps only a borrowed pointer (TensorObject::lent).
// wrap() and unwrap() reverse that. If the tensor dies first, it drops the object with it. But the
// dying thread first waits for the interpreter lock, and meanwhile a weak reference may have
// brought the object back. Then the object owns its tensor again, and both live on.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/tensors/tensor_object.h"

#include <structmember.h>

#include <vector>

#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/collector.h"
#include "python_bindings/csrc/dispatch/dispatch_modes.h"
#include "python_bindings/csrc/dispatch/overrides.h"
#include "python_bindings/csrc/exchange/dlpack.h"

namespace treadle::python {

PyTypeObject* tensor_type = nullptr;

namespace {

// Memory of dead plain objects, for the next ones. An object costs about 25 ns this way instead
// of 60.
constexpr int kMaxFree = 64;
TensorObject* free_objects[kMaxFree];
int free_count = 0;

void keep_finalizer(PyTypeObject* type);

TensorObject* allocate(PyTypeObject* type) {
  TensorObject* object;
  if (type == tensor_type && free_count > 0) {
    object = free_objects[--free_count];
    PyObject_Init(reinterpret_cast<PyObject*>(object), type);
  } else if (type == tensor_type) {
    object = PyObject_GC_New(TensorObject,
                             type);  // tracked only once it has attributes: see set_attribute()
    if (!object) throw PythonError{};
    new (&object->tensor) Tensor();
  } else {
    keep_finalizer(type);
    object = reinterpret_cast<TensorObject*>(type->tp_alloc(type, 0));
    if (!object) throw PythonError{};
    new (&object->tensor) Tensor();
    return object;
  }
  object->lent = nullptr;
  object->dict = nullptr;
  object->weakrefs = nullptr;
  return object;
}

// Tensors get a history when they are made, or later, by an in-place operator.
PyObject* tracked(TensorObject* object, const TensorImpl& impl) {
  auto* o = reinterpret_cast<PyObject*>(object);
  if (impl.autograd_meta() && graph_holds_objects()) track(o);
  return o;
}

[[gnu::always_inline]] inline PyObject* attach(TensorObject* object, Tensor tensor) {
  tensor.impl()->python().set(object, false);
  object->tensor = std::move(tensor);
  return tracked(object, *object->tensor.impl());
}

// Passes the object to its tensor if Note [Who owns whom] requires it. The object then has one more
// reference.
void lend_to_tensor(TensorObject* object) {
  TensorImpl* impl = object->tensor.impl();
  if (!impl || impl->use_count() <= 1) return;
  if (is_exact_tensor(reinterpret_cast<PyObject*>(object)) && !object->weakrefs &&
      !(object->dict && PyDict_GET_SIZE(object->dict) > 0)) {
    return;
  }
  Py_INCREF(object);
  object->lent = impl;
  impl->python().set(object, true);
  // The last step: the tensor may die here and drop the object again.
  std::move(object->tensor).take_impl().reset();
}

void finalize(PyObject* self) { lend_to_tensor(reinterpret_cast<TensorObject*>(self)); }

// The function that the interpreter installs in place of finalize() in a class with __del__.
destructor call_del = nullptr;

void finalize_with_del(PyObject* self) {
  auto* object = reinterpret_cast<TensorObject*>(self);
  lend_to_tensor(object);
  if (!object->lent) call_del(self);
}
void keep_finalizer(PyTypeObject* type) {
  if (type->tp_finalize == &finalize || type->tp_finalize == &finalize_with_del) return;
  call_del = type->tp_finalize;
  type->tp_finalize = &finalize_with_del;
}

// The interpreter runs a finalizer once in an object's life; ours must run each time the object is
// about to go.
void forget_finalized(PyObject* self) {
  if (PyObject_GC_IsFinalized(self)) reinterpret_cast<uintptr_t*>(self)[-1] &= ~uintptr_t{1};
}

// The object owns its tensor again.
void take_back(TensorObject* object, Tensor tensor) {
  object->lent = nullptr;
  tensor.impl()->python().set(object, false);
  object->tensor = std::move(tensor);
  forget_finalized(reinterpret_cast<PyObject*>(object));
}

// Runs when the last owner of a tensor that owns its object lets go, on any thread. False where the
// tensor has an owner again.
bool release_owned(TensorImpl& impl) {
  if (!interpreter_alive()) return true;
  AcquireGil gil;
  PythonSlot& slot = impl.python();
  if (impl.use_count() > 1) return false;
  if (!slot.owned()) return true;
  auto* object = static_cast<TensorObject*>(slot.object());
  const bool seen = Py_REFCNT(object) > 1;  // by code that has not read the tensor yet
  if (seen) {
    take_back(object, Tensor(IntrusivePtr<TensorImpl>(&impl)));
  } else {
    object->lent = nullptr;
    slot.set(nullptr, false);
    if (Py_TYPE(object)->tp_finalize == &finalize_with_del) {
      // __del__ finds the elements that it expects.
      object->tensor = Tensor(make_intrusive<TensorImpl>(impl.storage(), impl.dtype(), impl.sizes(),
                                                         impl.strides(), impl.storage_offset()));
      object->tensor.impl()->set_lazy(impl.is_conj(), impl.is_neg());
      object->tensor.impl()->set_layer(Layer::Dispatch, impl.layers() & layer_bit(Layer::Dispatch));
      object->tensor.impl()->python().set(object, false);
    }
    forget_finalized(reinterpret_cast<PyObject*>(object));
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  call_python(Py_DecRef, reinterpret_cast<PyObject*>(object));
  PyErr_Restore(type, value, traceback);
  return !seen;
}

void deallocate(PyObject* self) {
  auto* object = reinterpret_cast<TensorObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  // For a subclass the interpreter has called finalize() already.
  if (type == tensor_type && (object->dict || object->weakrefs)) {
    Py_SET_REFCNT(self, 1);
    lend_to_tensor(object);
    Py_SET_REFCNT(self, Py_REFCNT(self) - 1);
    if (Py_REFCNT(self) > 0) return;
  }
  if (PyObject_GC_IsTracked(self)) PyObject_GC_UnTrack(self);
  if (object->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(object->dict);
  if (TensorImpl* impl = object->tensor.impl()) {
    if (impl->python().object() == object) impl->python().set(nullptr, false);
    run([&] { object->tensor.reset(); }, object->tensor.device());
  }
  if (type == tensor_type && free_count < kMaxFree) {
    forget_finalized(self);
    free_objects[free_count++] = object;
  } else {
    object->tensor.~Tensor();
    type->tp_free(self);
  }
  Py_DECREF(type);
}

// Whether objects of Python may lie behind the tensor: in its graph, or in that of its parts.
bool may_lead_to_objects(const TensorImpl* impl) {
  return impl && (impl->autograd_meta() || impl->layout() != Layout::Strided);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* object = reinterpret_cast<TensorObject*>(self);
  Py_VISIT(object->dict);
  Py_VISIT(Py_TYPE(self));
  const bool leads = may_lead_to_objects(object->tensor.impl());
  return leads ? visit_behind(object->tensor, visit, arg) : 0;
}

// The collector has found that the object is unreachable. The objects that the tensor holds are
// freed with it. If the object is used all the same, it reports that it is empty.
int clear(PyObject* self) {
  auto* object = reinterpret_cast<TensorObject*>(self);
  Py_CLEAR(object->dict);
  TensorImpl* impl = object->tensor.impl();
  if (may_lead_to_objects(impl) && is_sole_owner(object->tensor)) {
    impl->python().set(nullptr, false);
    const Tensor dropped = std::move(object->tensor);
  }
  return 0;
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  const int result = PyObject_GenericSetAttr(self, name, value);
  if (result == 0 && reinterpret_cast<TensorObject*>(self)->dict) track(self);
  return result;
}
// The dictionary is handed out: whoever has it may put anything in.
PyObject* get_dict(PyObject* self, void* context) {
  track(self);
  return PyObject_GenericGetDict(self, context);
}
int set_dict(PyObject* self, PyObject* value, void* context) {
  track(self);
  return PyObject_GenericSetDict(self, value, context);
}

Py_hash_t hash(PyObject* self) { return _Py_HashPointer(self); }

constinit Kept tensor_repr;

PyObject* represent(PyObject* self) {
  return guarded([&] {
    PyObject* function =
        tensor_repr.get([] { return import_attribute("treadle._tensor_str", "tensor_repr"); });
    return Object(call_python(PyObject_CallOneArg, function, self)).release();
  });
}

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {},
};

}  // namespace

void track(PyObject* tensor) {
  if (!PyObject_GC_IsTracked(tensor)) PyObject_GC_Track(tensor);
}

void reclaim(TensorObject* object) {
  TensorImpl* impl = object->lent;
  check<ErrorKind::Runtime>(impl != nullptr && impl->try_retain(),
                            "expected a tensor, got a Tensor object without contents");
  take_back(object, Tensor(IntrusivePtr<TensorImpl>::adopt(impl)));
  Py_DECREF(object);  // the tensor's reference; the caller has one of its own
}

PyObject* wrap(Tensor tensor) {
  TensorImpl* impl = tensor.impl();
  if (!impl) return none();
  PythonSlot& slot = impl->python();
  if (void* existing = slot.object()) {
    auto* object = static_cast<TensorObject*>(existing);
    if (slot.owned()) {
      take_back(object, std::move(tensor));  // its reference to the object becomes the caller's
    } else {
      Py_INCREF(object);
    }
    return tracked(object, *impl);
  }
  return attach(allocate(tensor_type), std::move(tensor));
}

PyObject* wrap_as(PyTypeObject* type, Tensor tensor) {
  check_internal(tensor.impl()->python().object() == nullptr,
                 "a tensor that has a Python object was given another");
  if (class_dispatches(type)) {
    add_dispatch_layer();
    tensor.impl()->set_layer(Layer::Dispatch, true);
  }
  return attach(allocate(type), std::move(tensor));
}

void init_tensor_type(PyObject* module) {
  PythonSlot::set_release(&release_owned);

  // These live as long as the type does.
  static std::vector<PyMethodDef> methods;
  static std::vector<PyGetSetDef> properties;
  std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, slot(&deallocate)},
      {Py_tp_traverse, slot(&traverse)},
      {Py_tp_clear, slot(&clear)},
      {Py_tp_finalize, slot(&finalize)},
      {Py_tp_setattro, slot(&set_attribute)},
      {Py_tp_hash, slot(&hash)},
      {Py_tp_repr, slot(&overridable_slot<"__repr__", &represent, kAnyObject>)},
      {Py_tp_new, slot(&new_tensor_object)},
      {Py_tp_members, members},
      {Py_tp_doc,
       const_cast<char*>("A multi-dimensional array of elements of one dtype, on one device.")},
  };
  add_number_slots(slots);
  add_index_slots(slots);
  add_tensor_methods(methods);
  add_conversion_methods(methods);
  add_construct_methods(methods);
  add_autograd_methods(methods);
  add_override_methods(methods);
  add_generated_methods(methods);
  methods.push_back({});
  add_properties(properties);
  add_autograd_properties(properties);
  make_overridable(properties);
  properties.push_back({"__dict__", get_dict, set_dict, nullptr, nullptr});
  properties.push_back({});
  slots.push_back({Py_tp_methods, methods.data()});
  slots.push_back({Py_tp_getset, properties.data()});
  slots.push_back({});
  PyType_Spec spec = {"treadle.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  tensor_type = reinterpret_cast<PyTypeObject*>(Object(PyType_FromSpec(&spec)).release());
  tensor_type->tp_name = "Tensor";  // as Python's own messages call it: 'Tensor' object has no ...
  // NumPy leaves `array + tensor` to the tensor.
  checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), "__array_priority__",
                                 Object(PyLong_FromLong(1000)).get()));
  add_exchange_api(tensor_type);
  checked(PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type)));
}

}  // namespace treadle::python
