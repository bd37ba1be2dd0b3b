// The Python types Node (what `grad_fn` is) and RemovableHandle.
#include "python_bindings/csrc/node_object.h"

#include "autograd/accumulate_grad.h"
#include "autograd/meta.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/module.h"

namespace treadle::python {
namespace {

using autograd::Grads;
using autograd::HookId;
using autograd::Node;
using autograd::NodePtr;

PyTypeObject* node_type = nullptr;
PyTypeObject* handle_type = nullptr;

struct NodeObject {
  PyObject_HEAD NodePtr node;
};

struct HandleObject {
  PyObject_HEAD Tensor tensor;
  NodePtr node;
  HookId id;
};

const NodePtr& node_of(PyObject* self) { return reinterpret_cast<NodeObject*>(self)->node; }

template <class T>
void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if constexpr (std::is_same_v<T, NodeObject>) {
    reinterpret_cast<NodeObject*>(self)->node.~NodePtr();
  } else {
    reinterpret_cast<HandleObject*>(self)->tensor.~Tensor();
    reinterpret_cast<HandleObject*>(self)->node.~NodePtr();
  }
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* name(PyObject* self, PyObject*) {
  return guarded([&] { return unicode(node_of(self)->name()).release(); });
}
PyObject* represent(PyObject* self) {
  return guarded([&] {
    return Object(PyUnicode_FromFormat("<%s object at %p>", node_of(self)->name().c_str(),
                                       node_of(self).get()))
        .release();
  });
}
PyObject* sequence_nr(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(node_of(self)->sequence_nr());
}

PyObject* next_functions(PyObject* self, void*) {
  return guarded([&] {
    const auto edges = node_of(self)->edges();
    Object tuple(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
    for (size_t i = 0; i < edges.size(); ++i) {
      Object next(wrap_node(edges[i].node));
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       Object(Py_BuildValue("(OI)", next.get(), edges[i].input_nr)).release());
    }
    return tuple.release();
  });
}
PyObject* variable(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    auto* accumulator = dynamic_cast<autograd::AccumulateGrad*>(node_of(self).get());
    if (!accumulator) {
      PyErr_SetString(PyExc_AttributeError,
                      "only the node that accumulates a leaf's gradient has a variable");
      throw PythonError{};
    }
    return wrap(accumulator->leaf());
  });
}

Object wrap_grads(const Grads& grads) {
  Object tuple(PyTuple_New(static_cast<Py_ssize_t>(grads.size())));
  for (size_t i = 0; i < grads.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), wrap(grads[i]));
  return tuple;
}
// What a hook on a node returns: None to leave the gradients, or a tensor or tuple of as many.
Grads read_grads(PyObject* result, size_t count) {
  Grads grads;
  if (result == Py_None) return grads;
  Object items = PyTuple_Check(result) ? Object::borrow(result) : Object(PyTuple_Pack(1, result));
  check<ErrorKind::Runtime>(static_cast<size_t>(PyTuple_GET_SIZE(items.get())) == count,
                            "hook: expected ", count, " gradients, got ",
                            int64_t{PyTuple_GET_SIZE(items.get())});
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i));
    check<ErrorKind::Type>(item == Py_None || is_tensor(item),
                           "hook: expected tensors or None, got ", type_text(item));
    grads.push_back(item == Py_None ? Tensor() : unwrap(item));
  }
  return grads;
}

PyObject* register_hook(PyObject* self, PyObject* function) {
  return guarded([&] {
    const NodePtr& node = node_of(self);
    const HookId id = node->add_post_hook(
        [held = HeldFunction(function)](const Grads& inputs, const Grads& outputs) {
          return in_python([&] {
            Object a = wrap_grads(inputs), b = wrap_grads(outputs);
            Object result(PyObject_CallFunctionObjArgs(held.get(), a.get(), b.get(), nullptr));
            return read_grads(result.get(), inputs.size());
          });
        });
    return wrap_hook_handle(node, id);
  });
}
PyObject* register_prehook(PyObject* self, PyObject* function) {
  return guarded([&] {
    const NodePtr& node = node_of(self);
    const HookId id = node->add_pre_hook([held = HeldFunction(function)](const Grads& grads) {
      return in_python([&] {
        Object a = wrap_grads(grads);
        Object result(PyObject_CallOneArg(held.get(), a.get()));
        return read_grads(result.get(), grads.size());
      });
    });
    return wrap_hook_handle(node, id);
  });
}

// Objects are made on demand; two over one node are equal.
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (!Py_IS_TYPE(b, node_type) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return to_bool((node_of(a) == node_of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* self) { return _Py_HashPointer(node_of(self).get()); }

PyMethodDef node_methods[] = {
    {"name", name, METH_NOARGS, "The node's name, such as \"MulBackward0\"."},
    {"_sequence_nr", sequence_nr, METH_NOARGS, "Nodes made later have a larger number."},
    {"register_hook", register_hook, METH_O,
     "Calls hook(grad_inputs, grad_outputs) after the node has run."},
    {"register_prehook", register_prehook, METH_O,
     "Calls hook(grad_outputs) before the node runs."},
    {},
};
PyGetSetDef node_properties[] = {
    {"next_functions", next_functions, nullptr,
     "Where the node's gradients go: (node, input number) each.", nullptr},
    {"variable", variable, nullptr, "The leaf whose gradient is accumulated.", nullptr},
    {},
};

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

PyObject* wrap_node(const NodePtr& node) {
  if (!node) return none();
  auto* object = PyObject_New(NodeObject, node_type);
  if (!object) throw PythonError{};
  new (&object->node) NodePtr(node);
  return reinterpret_cast<PyObject*>(object);
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

void init_node_types(PyObject* module) {
  PyType_Slot node_slots[] = {
      {Py_tp_dealloc, slot(&deallocate<NodeObject>)},
      {Py_tp_repr, slot(&represent)},
      {Py_tp_methods, node_methods},
      {Py_tp_getset, node_properties},
      {Py_tp_hash, slot(&hash)},
      {Py_tp_richcompare, slot(&compare)},
      {},
  };
  PyType_Spec node_spec = {"treadle.autograd.Node", sizeof(NodeObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, node_slots};
  node_type = reinterpret_cast<PyTypeObject*>(Object(PyType_FromSpec(&node_spec)).release());
  checked(PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(node_type)));

  PyType_Slot handle_slots[] = {{Py_tp_dealloc, slot(&deallocate<HandleObject>)},
                                {Py_tp_methods, handle_methods},
                                {Py_tp_getset, handle_properties},
                                {}};
  PyType_Spec handle_spec = {"treadle.utils.hooks.TensorHookHandle", sizeof(HandleObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, handle_slots};
  handle_type = reinterpret_cast<PyTypeObject*>(Object(PyType_FromSpec(&handle_spec)).release());
  checked(PyModule_AddObjectRef(module, "_HookHandle", reinterpret_cast<PyObject*>(handle_type)));
}

}  // namespace treadle::python
