// The Python types behind treadle.ops: an operator with its full name, and a name with overloads.
// The package's classes (OpOverload, CustomOpDef, ...) derive from them, so that a call goes
// straight to C++.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/library/defined_operator.h"

#include <structmember.h>

#include <new>

namespace treadle::python {
namespace {

template <class T>
struct CallObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  T* callee;
  PyObject* dict;
  PyObject* weakrefs;
};
using OperatorObject = CallObject<LibraryOperator>;
using PacketObject = CallObject<LibraryPacket>;

PyTypeObject* operator_type = nullptr;

template <class T>
CallObject<T>* object_of(PyObject* o) {
  return reinterpret_cast<CallObject<T>*>(o);
}
LibraryOperator& operator_of(PyObject* o) { return *object_of<LibraryOperator>(o)->callee; }

template <class T>
PyObject* call(PyObject* self, PyObject* const* values, size_t count, PyObject* names) {
  return guarded(
      [&] { return object_of<T>(self)->callee->call(values, PyVectorcall_NARGS(count), names); });
}

template <class T>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(object_of<T>(self)->dict);
  Py_VISIT(Py_TYPE(self));
  return 0;
}
template <class T>
int clear(PyObject* self) {
  Py_CLEAR(object_of<T>(self)->dict);
  return 0;
}
void let_go(LibraryOperator* op, PyObject* self) {
  if (op && op->object() == self) op->set_object(nullptr);
}
void let_go(LibraryPacket* packet, PyObject*) { delete packet; }

template <class T>
void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (object_of<T>(self)->weakrefs) PyObject_ClearWeakRefs(self);
  let_go(object_of<T>(self)->callee, self);
  clear<T>(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// A new object of the class for the name that comes first. Further arguments are for __init__.
template <class T, class Find>
PyObject* make(PyTypeObject* type, PyObject* args, Find&& find) {
  return guarded([&] {
    PyObject* name = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : Py_None;
    check<ErrorKind::Type>(PyUnicode_Check(name), "expected the name of an operator, got ",
                           type_text(name));
    T* callee = find(std::string(utf8(name)));
    Object made(type->tp_alloc(type, 0));
    object_of<T>(made.get())->vectorcall = &call<T>;
    object_of<T>(made.get())->callee = callee;
    return made.release();
  });
}
PyObject* new_operator(PyTypeObject* type, PyObject* args, PyObject*) {
  return make<LibraryOperator>(
      type, args, [](const std::string& name) { return &LibraryOperator::named(name); });
}
PyObject* new_packet(PyTypeObject* type, PyObject* args, PyObject*) {
  return make<LibraryPacket>(type, args,
                             [](const std::string& name) { return new LibraryPacket(name); });
}
int no_init(PyObject*, PyObject*, PyObject*) { return 0; }

// ---- methods

// Overrides receive this object.
PyObject* speak_for(PyObject* self, PyObject*) {
  operator_of(self).set_object(self);
  return none();
}

// Calls the operator below the layers that come before its kernel.
PyObject* call_kernel(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    const LayerState before = layer_state();
    struct Back {
      LayerState state;
      ~Back() { layer_state() = state; }
    } const back{before};
    layer_state().excluded |= static_cast<LayerMask>((layer_bit(Layer::Autograd) << 1) - 1);
    return Object(call_python(PyObject_Call, self, args, kwargs)).release();
  });
}

// _set_overloads(operators)
PyObject* set_overloads(PyObject* self, PyObject* operators) {
  return guarded([&] {
    check_internal(PyTuple_Check(operators), "_set_overloads takes a tuple");
    std::vector<LibraryOperator*> overloads;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operators); ++i) {
      PyObject* o = PyTuple_GET_ITEM(operators, i);
      check_internal(PyObject_TypeCheck(o, operator_type), "_set_overloads takes operators");
      overloads.push_back(&operator_of(o));
    }
    LibraryPacket& packet = *object_of<LibraryPacket>(self)->callee;
    packet.set_object(self);
    packet.set_overloads(std::move(overloads));
    return none();
  });
}

PyMethodDef operator_methods[] = {
    {"_speak_for", speak_for, METH_NOARGS, "Makes this the object that overrides are told of."},
    {"_call_kernel", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&call_kernel)),
     METH_VARARGS | METH_KEYWORDS, "Calls the kernel, with no layer before it."},
    {},
};
PyMethodDef packet_methods[] = {
    {"_set_overloads", set_overloads, METH_O, "The operators that calls are tried with, in order."},
    {},
};

template <class T>
PyTypeObject* make_type(PyObject* module, const char* name, const char* attribute, newfunc make_new,
                        PyMethodDef* methods) {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(CallObject<T>, vectorcall), READONLY, nullptr},
      {"__dictoffset__", T_PYSSIZET, offsetof(CallObject<T>, dict), READONLY, nullptr},
      {"__weaklistoffset__", T_PYSSIZET, offsetof(CallObject<T>, weakrefs), READONLY, nullptr},
      {},
  };
  static PyGetSetDef properties[] = {
      {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};
  PyType_Slot slots[] = {
      {Py_tp_new, slot(make_new)},
      {Py_tp_init, slot(&no_init)},
      {Py_tp_dealloc, slot(&deallocate<T>)},
      {Py_tp_traverse, slot(&traverse<T>)},
      {Py_tp_clear, slot(&clear<T>)},
      {Py_tp_call, slot(&PyVectorcall_Call)},
      {Py_tp_members, members},
      {Py_tp_getset, properties},
      {Py_tp_methods, methods},
      {},
  };
  PyType_Spec spec = {
      name, sizeof(CallObject<T>), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
      slots};
  auto* type = reinterpret_cast<PyTypeObject*>(Object(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, attribute, reinterpret_cast<PyObject*>(type)));
  return type;
}

}  // namespace

void init_library_objects(PyObject* module) {
  operator_type = make_type<LibraryOperator>(module, "treadle._C._OperatorCall", "_OperatorCall",
                                             &new_operator, operator_methods);
  make_type<LibraryPacket>(module, "treadle._C._OperatorPacketCall", "_OperatorPacketCall",
                           &new_packet, packet_methods);
}

}  // namespace treadle::python
