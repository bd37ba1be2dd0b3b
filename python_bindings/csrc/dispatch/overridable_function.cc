// Functions of the package that are written in Python and may be overridden like operators. An
// object around the function looks for overrides among the arguments before it calls the function.
//
// In all other respects it is the function: name, text, signature, pickling by name, binding as a
// method.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/python.h"

#include <structmember.h>

#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/dispatch/overrides.h"
#include "python_bindings/csrc/module.h"

namespace treadle::python {
namespace {

struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* dict;
  PyObject* weakrefs;
};
FunctionObject* function_of(PyObject* o) { return reinterpret_cast<FunctionObject*>(o); }

PyTypeObject* function_type = nullptr;

bool may_override(PyObject* o) {
  if (is_exact_tensor(o)) return false;
  if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(o, i);
      if (!is_exact_tensor(item) && has_override(item)) return true;
    }
    return false;
  }
  return has_override(o);
}

[[gnu::cold, gnu::noinline]] PyObject* call_elsewhere(PyObject* self, PyObject* const* arguments,
                                                      Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    std::vector<PyObject*> overriding;
    Object args(PyTuple_New(count)), kwargs;
    if (named > 0) kwargs = Object(PyDict_New());
    for (Py_ssize_t i = 0; i < count + named; ++i) {
      collect_overriding(arguments[i], overriding);
      if (i < count)
        PyTuple_SET_ITEM(args.get(), i, new_ref(arguments[i]));
      else
        checked(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(names, i - count), arguments[i]));
    }
    return call_override(self, overriding, args.get(), kwargs.get());
  });
}

PyObject* call(PyObject* self, PyObject* const* arguments, size_t count_and_flags,
               PyObject* names) {
  const Py_ssize_t count = PyVectorcall_NARGS(count_and_flags);
  const Py_ssize_t all = count + (names ? PyTuple_GET_SIZE(names) : 0);
  bool elsewhere = any_override_mode();
  for (Py_ssize_t i = 0; i < all && !elsewhere; ++i) elsewhere = may_override(arguments[i]);
  if (elsewhere) [[unlikely]]
    return call_elsewhere(self, arguments, count, names);
  return PyObject_Vectorcall(function_of(self)->function, arguments, count_and_flags, names);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(function_of(self)->function);
  Py_VISIT(function_of(self)->dict);
  Py_VISIT(Py_TYPE(self));
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(function_of(self)->function);
  Py_CLEAR(function_of(self)->dict);
  return 0;
}
void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (function_of(self)->weakrefs) PyObject_ClearWeakRefs(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// Attributes that the object lacks are those of the function.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GetAttr(function_of(self)->function, name);
}
PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  return object && object != Py_None ? PyMethod_New(self, object) : new_ref(self);
}
PyObject* represent(PyObject* self) { return PyObject_Repr(function_of(self)->function); }
PyObject* reduce(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(function_of(self)->function, "__qualname__");
}

// _overridable(function)
PyObject* overridable(PyObject*, PyObject* function) {
  return guarded([&] {
    check<ErrorKind::Type>(PyFunction_Check(function), OpName("_overridable"),
                           "expected a function, got ", type_text(function));
    Object made(function_type->tp_alloc(function_type, 0));
    FunctionObject* object = function_of(made.get());
    object->vectorcall = &call;
    object->function = new_ref(function);
    object->dict = Object(PyDict_New()).release();
    for (const char* name : {"__name__", "__qualname__", "__module__", "__doc__"})
      checked(PyDict_SetItemString(object->dict, name, attribute(function, name).get()));
    checked(PyDict_SetItemString(object->dict, "__wrapped__", function));
    return made.release();
  });
}

}  // namespace

void init_overridable_functions(PyObject* module) {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, vectorcall), READONLY, nullptr},
      {"__dictoffset__", T_PYSSIZET, offsetof(FunctionObject, dict), READONLY, nullptr},
      {"__weaklistoffset__", T_PYSSIZET, offsetof(FunctionObject, weakrefs), READONLY, nullptr},
      {},
  };
  static PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};
  static PyGetSetDef properties[] = {
      {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};
  PyType_Slot slots[] = {
      {Py_tp_dealloc, slot(&deallocate)},
      {Py_tp_traverse, slot(&traverse)},
      {Py_tp_clear, slot(&clear)},
      {Py_tp_call, slot(&PyVectorcall_Call)},
      {Py_tp_getattro, slot(&get_attribute)},
      {Py_tp_descr_get, slot(&bind)},
      {Py_tp_repr, slot(&represent)},
      {Py_tp_members, members},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {},
  };
  PyType_Spec spec = {"treadle.overrides.OverridableFunction", sizeof(FunctionObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                          Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  function_type = reinterpret_cast<PyTypeObject*>(Object(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "_OverridableFunction",
                                reinterpret_cast<PyObject*>(function_type)));
  static PyMethodDef functions[] = {{"_overridable", overridable, METH_O, nullptr}, {}};
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace treadle::python
