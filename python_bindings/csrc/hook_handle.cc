// The Python type of handles by which hooks are removed, and Python functions that serve as hooks.
#include "autograd/meta.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/module.h"
#include "python_bindings/csrc/node_object.h"

namespace treadle::python {
namespace {

using autograd::HookId;
using autograd::NodePtr;

PyTypeObject* handle_type = nullptr;

struct HandleObject {
  PyObject_HEAD Tensor tensor;
  NodePtr node;
  HookId id;
};

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<HandleObject*>(self)->tensor.~Tensor();
  reinterpret_cast<HandleObject*>(self)->node.~NodePtr();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* remove(PyObject* self, PyObject*) {
  return guarded([&] {
    auto* handle = reinterpret_cast<HandleObject*>(self);
    if (handle->tensor.defined())
      autograd::remove_hook(handle->tensor, handle->id);
    else if (handle->node)
      handle->node->remove_hook(handle->id);
    handle->tensor.reset();
    handle->node.reset();
    return none();
  });
}
PyObject* enter(PyObject* self, PyObject*) { return new_ref(self); }
PyObject* leave(PyObject* self, PyObject*) { return remove(self, nullptr); }
PyObject* handle_id(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(reinterpret_cast<HandleObject*>(self)->id);
}

PyMethodDef handle_methods[] = {
    {"remove", remove, METH_NOARGS, "Removes the hook."},
    {"__enter__", enter, METH_NOARGS, nullptr},
    {"__exit__", leave, METH_VARARGS, nullptr},
    {},
};
PyGetSetDef handle_properties[] = {{"id", handle_id, nullptr, nullptr, nullptr}, {}};

HandleObject* make_handle(HookId id) {
  auto* handle = PyObject_New(HandleObject, handle_type);
  if (!handle) throw PythonError{};
  new (&handle->tensor) Tensor();
  new (&handle->node) NodePtr();
  handle->id = id;
  return handle;
}

}  // namespace

HeldFunction::HeldFunction(const HeldFunction& o) : function_(o.function_) {
  AcquireGil gil;
  Py_INCREF(function_);
}
HeldFunction::~HeldFunction() {
  if (!interpreter_alive()) return;
  AcquireGil gil;
  Py_DECREF(function_);
}

Tensor call_hook(const HeldFunction& function, const Tensor& grad) {
  return in_python([&] {
    Object argument(wrap(grad));
    Object result(PyObject_CallOneArg(function.get(), argument.get()));
    check<ErrorKind::Type>(result.get() == Py_None || is_tensor(result.get()),
                           "hook: expected a tensor or None, got ", type_text(result.get()));
    return result.get() == Py_None ? Tensor() : unwrap(result.get());
  });
}

PyObject* wrap_hook_handle(const Tensor& tensor, HookId id) {
  HandleObject* handle = make_handle(id);
  handle->tensor = tensor;
  return reinterpret_cast<PyObject*>(handle);
}
PyObject* wrap_hook_handle(const NodePtr& node, HookId id) {
  HandleObject* handle = make_handle(id);
  handle->node = node;
  return reinterpret_cast<PyObject*>(handle);
}

void init_hook_type(PyObject* module) {
  PyType_Slot handle_slots[] = {{Py_tp_dealloc, slot(&deallocate)},
                                {Py_tp_methods, handle_methods},
                                {Py_tp_getset, handle_properties},
                                {}};
  PyType_Spec handle_spec = {"treadle.utils.hooks.TensorHookHandle", sizeof(HandleObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, handle_slots};
  handle_type = reinterpret_cast<PyTypeObject*>(Object(PyType_FromSpec(&handle_spec)).release());
  checked(PyModule_AddObjectRef(module, "_HookHandle", reinterpret_cast<PyObject*>(handle_type)));
}

}  // namespace treadle::python
