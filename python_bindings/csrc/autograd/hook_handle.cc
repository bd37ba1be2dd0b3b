// The Python type of handles that remove hooks, and Python functions as hooks of tensors.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph/engine.h"
#include "autograd/meta.h"
#include "python_bindings/csrc/autograd/node_object.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/module.h"

namespace treadle::python {
namespace {

using autograd::HookId;
using autograd::NodePtr;

PyTypeObject* handle_type = nullptr;

// It identifies the hook without keeping it alive. A handle that a module stores beside its
// parameter would be one more owner, and would hide the cycle from the collector.
struct HandleObject {
  PyObject_HEAD PyObject* tensor;  // a weak reference; null for a node's hook
  const autograd::Node* node;      // to be looked up, never followed
  std::weak_ptr<HeldFunction> hook;
  HookId id;
};

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  auto* handle = reinterpret_cast<HandleObject*>(self);
  Py_CLEAR(handle->tensor);
  handle->hook.~weak_ptr();
  type->tp_free(self);
  Py_DECREF(type);
}

// Whether the hook existed. The node is the one with the hook. A view may have another node by now.
bool remove_from(const Tensor& t, HookId id) {
  const autograd::AutogradMeta* meta = autograd::meta_of(t);
  if (!meta) return false;
  autograd::LeafHooks* leaf = meta->hooks.get();
  if (leaf && (leaf->tensor.remove(id) || leaf->post_accumulate.remove(id))) return true;
  NodePtr maker;
  {
    const std::lock_guard lock(meta->lock);
    maker = meta->grad_fn;
  }
  return maker && maker->remove_hook(id);
}

// The node of the hook, if it is alive elsewhere or its hooks are running.
NodePtr node_of(const HandleObject& handle) {
  if (NodePtr node = node_with_object(handle.node)) return node;
  autograd::Node* running = autograd::hooks_running_of();
  return running == handle.node ? NodePtr(running) : NodePtr();
}

PyObject* remove(PyObject* self, PyObject*) {
  return guarded([&] {
    auto* handle = reinterpret_cast<HandleObject*>(self);
    const std::shared_ptr<HeldFunction> hook = std::exchange(handle->hook, {}).lock();
    if (!hook) return none();
    const Object object =
        Object::borrow(handle->tensor ? PyWeakref_GetObject(handle->tensor) : Py_None);
    bool removed = false;
    if (object.get() != Py_None)
      removed = remove_from(unwrap(object.get()), handle->id);
    else if (const NodePtr node = node_of(*handle))
      removed = node->remove_hook(handle->id);
    // If the graph still has the hook, but no other code knows the node, the call has no effect. A
    // hook that is removed while the hooks before it run is called one last time.
    if (!removed) hook->let_go();
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

PyObject* make_handle(Object tensor, const autograd::Node* node, const HookInPython& hook,
                      HookId id) {
  auto* handle = PyObject_New(HandleObject, handle_type);
  if (!handle) throw PythonError{};
  handle->tensor = tensor.release();
  handle->node = node;
  new (&handle->hook) std::weak_ptr<HeldFunction>(hook.held);
  handle->id = id;
  return reinterpret_cast<PyObject*>(handle);
}

}  // namespace

HeldFunction::~HeldFunction() {
  if (!interpreter_alive()) return;
  AcquireGil gil;
  call_python(Py_DecRef, function_);
}

namespace {
Tensor call(const HeldFunction& held, const Tensor& t) {
  return in_python([&] {
    const Object function = Object::borrow(held.get());
    if (!function) return Tensor();  // removed
    Object argument(wrap(t));
    Object result(call_python(PyObject_CallOneArg, function.get(), argument.get()));
    check<ErrorKind::Type>(result.get() == Py_None || is_tensor(result.get()), OpName("hook"),
                           "expected a tensor or None, got ", type_text(result.get()));
    return result.get() == Py_None ? Tensor() : unwrap(result.get());
  });
}
}  // namespace

Tensor TensorHookInPython::operator()(const Tensor& grad) const { return call(*held, grad); }
void LeafHookInPython::operator()(const Tensor& leaf) const {
  in_python([&] {
    const Object function = Object::borrow(held->get());
    if (!function) return false;  // removed
    Object argument(wrap(leaf));
    Object result(call_python(PyObject_CallOneArg, function.get(), argument.get()));
    check<ErrorKind::Runtime>(result.get() == Py_None, OpName("register_post_accumulate_grad_hook"),
                              "expected a hook that returns None, got ", type_text(result.get()));
    return true;
  });
}

PyObject* wrap_hook_handle(PyObject* tensor, const HookInPython& hook, HookId id) {
  return make_handle(Object(PyWeakref_NewRef(tensor, nullptr)),
                     autograd::grad_fn(unwrap(tensor)).get(), hook, id);
}
PyObject* wrap_hook_handle(const NodePtr& node, const HookInPython& hook, HookId id) {
  return make_handle({}, node.get(), hook, id);
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
