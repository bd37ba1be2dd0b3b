// The Python type Node, the type of `grad_fn`, and a subtype for each kind of node: MulBackward0.
//
// A node has one object for as long as Python holds it.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/autograd/node_object.h"

#include <map>
#include <unordered_map>

#include "autograd/graph/accumulate_grad.h"
#include "autograd/meta.h"
#include "python_bindings/csrc/arguments/constants.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/module.h"

namespace treadle::python {
namespace {

using autograd::Grads;
using autograd::HookId;
using autograd::Node;
using autograd::NodePtr;

PyTypeObject* node_type = nullptr;

struct NodeObject {
  PyObject_HEAD NodePtr node;
};

// The object of each node that has one.
std::unordered_map<Node*, PyObject*>& objects() {
  static auto* map = new std::unordered_map<Node*, PyObject*>();  // outlives every object
  return *map;
}

const NodePtr& node_of(PyObject* self) { return reinterpret_cast<NodeObject*>(self)->node; }

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (PyObject_GC_IsTracked(self)) PyObject_GC_UnTrack(self);
  auto* object = reinterpret_cast<NodeObject*>(self);
  const auto entry = objects().find(object->node.get());
  if (entry != objects().end() && entry->second == self) objects().erase(entry);
  object->node.~NodePtr();
  type->tp_free(self);
  Py_DECREF(type);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return visit_behind(node_of(self), visit, arg);
}
// The node stays alive, so that calls on it are no error as long as the object lives.
int clear(PyObject* self) {
  const NodePtr& node = node_of(self);
  if (!is_sole_owner(node) || !node->hooks()) return 0;
  const auto all = [](const auto&) { return true; };
  autograd::NodeHooks& hooks = *node->hooks();
  hooks.tensor.remove_if(all);
  hooks.pre.remove_if(all);
  hooks.post.remove_if(all);
  const std::shared_ptr<void> notes = std::exchange(hooks.notes, {});
  return 0;
}

// The type of nodes of one name, made at the first of them.
PyTypeObject* type_of(const Node& node) {
  static auto* types = new std::map<std::string, PyTypeObject*>();
  constexpr std::string_view kBuiltin = "builtins.";
  std::string name = std::string(kBuiltin) + node.name();
  if (context_of_node(node)) name = "treadle.autograd.function." + node.name();
  const auto [entry, added] = types->try_emplace(std::move(name), nullptr);
  if (!entry->second) {
    PyType_Slot slots[] = {{Py_tp_dealloc, slot(&deallocate)},
                           {Py_tp_traverse, slot(&traverse)},
                           {Py_tp_clear, slot(&clear)},
                           {}};
    // The type keeps a pointer to the name, which does not move.
    PyType_Spec spec = {entry->first.c_str(), sizeof(NodeObject), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        slots};
    const Object bases(PyTuple_Pack(1, node_type));
    Object made(PyType_FromSpecWithBases(&spec, bases.get()));
    if (entry->second) return entry->second;  // another thread was quicker
    entry->second = reinterpret_cast<PyTypeObject*>(made.release());
    // The module is left out where Python shows a builtin type.
    if (entry->first.starts_with(kBuiltin)) entry->second->tp_name += kBuiltin.size();
  }
  return entry->second;
}

PyObject* name(PyObject* self, PyObject*) {
  return guarded([&] { return unicode(node_of(self)->name()).release(); });
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
// The result of a hook on a node: None to leave the gradients, or a tensor or a tuple with all of
// them.
Grads read_grads(PyObject* result, size_t count) {
  Grads grads;
  if (result == Py_None) return grads;
  Object items = PyTuple_Check(result) ? Object::borrow(result) : Object(PyTuple_Pack(1, result));
  check<ErrorKind::Runtime>(static_cast<size_t>(PyTuple_GET_SIZE(items.get())) == count,
                            OpName("hook"), "expected ", count, " gradients, got ",
                            int64_t{PyTuple_GET_SIZE(items.get())});
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i));
    check<ErrorKind::Type>(item == Py_None || is_tensor(item), OpName("hook"),
                           "expected tensors or None, got ", type_text(item));
    grads.push_back(item == Py_None ? Tensor() : unwrap(item));
  }
  return grads;
}

PyObject* register_hook(PyObject* self, PyObject* function) {
  return guarded([&] {
    const NodePtr& node = node_of(self);
    const PostHookInPython hook(function);
    return wrap_hook_handle(node, hook, node->add_post_hook(hook, hook.held.get()));
  });
}
PyObject* register_prehook(PyObject* self, PyObject* function) {
  return guarded([&] {
    const NodePtr& node = node_of(self);
    const PreHookInPython hook(function);
    return wrap_hook_handle(node, hook, node->add_pre_hook(hook, hook.held.get()));
  });
}

// A dictionary that lives as long as the node.
PyObject* metadata(PyObject* self, void*) {
  return guarded([&] {
    std::shared_ptr<void>& notes = node_of(self)->ensure_hooks().notes;
    if (!notes) notes = std::make_shared<HeldFunction>(Object(PyDict_New()).get());
    return new_ref(static_cast<HeldFunction*>(notes.get())->get());
  });
}

// The metadata of each arriving gradient, which is that of the node's results.
PyObject* input_metadata(PyObject* self, void*) {
  return guarded([&] {
    const Node& node = *node_of(self);
    const Object kind = import_attribute("types", "SimpleNamespace");
    Object list(PyList_New(0));
    for (uint32_t i = 0; i < node.num_inputs(); ++i) {
      const autograd::InputMetadata& input = node.input(i);
      const Object sizes(wrap_size(input.sizes)), dtype(wrap(input.dtype)),
          device(wrap(input.device)), none_given(PyTuple_New(0));
      const Object facts(Py_BuildValue("{s:O,s:O,s:O}", "shape", sizes.get(), "dtype", dtype.get(),
                                       "device", device.get()));
      const Object item(call_python(PyObject_Call, kind.get(), none_given.get(), facts.get()));
      checked(PyList_Append(list.get(), item.get()));
    }
    return list.release();
  });
}

PyObject* requires_grad(PyObject*, void*) { return to_bool(true); }

// grad_fn(*gradients): the result of backward at this node alone.
PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    const NodePtr& node = node_of(self);
    check<ErrorKind::Type>(!kwargs || PyDict_GET_SIZE(kwargs) == 0, OpName(node->name()),
                           "expected no keyword arguments");
    check<ErrorKind::Type>(static_cast<size_t>(PyTuple_GET_SIZE(args)) == node->num_inputs(),
                           OpName(node->name()), "expected ", node->num_inputs(),
                           " gradients as arguments, got ", int64_t{PyTuple_GET_SIZE(args)},
                           " instead");
    Grads grads = read_grads(args, node->num_inputs());
    {
      const ReleaseGil released;
      grads = node->apply(std::move(grads));
    }
    Object results = wrap_grads(grads);
    return grads.size() == 1 ? new_ref(PyTuple_GET_ITEM(results.get(), 0)) : results.release();
  });
}

// The saved values, and those that forward of a custom function left in its `ctx`, are visible at
// the node too.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return guarded([&]() -> PyObject* {
    const Node& node = *node_of(self);
    if (PyObject* value = saved_value(node, utf8(name))) return value;
    if (PyObject* ctx = context_of_node(node)) return PyObject_GetAttr(ctx, name);
    PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'", node.name().c_str(),
                 name);
    return nullptr;
  });
}

PyObject* list_attributes(PyObject* self, PyObject*) {
  return guarded([&] {
    Object names(call_python(PyObject_CallMethod, reinterpret_cast<PyObject*>(&PyBaseObject_Type),
                             "__dir__", "O", self));
    for (const std::string& name : saved_names(*node_of(self)))
      checked(PyList_Append(names.get(), unicode(name).get()));
    return names.release();
  });
}

PyMethodDef node_methods[] = {
    {"__dir__", list_attributes, METH_NOARGS, nullptr},
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
    {"metadata", metadata, nullptr, "A dictionary for notes about the node.", nullptr},
    {"_input_metadata", input_metadata, nullptr,
     "Shape, dtype and device of each result of the node.", nullptr},
    {"requires_grad", requires_grad, nullptr, "True: backward goes through the node.", nullptr},
    {"variable", variable, nullptr, "The leaf whose gradient is accumulated.", nullptr},
    {},
};

}  // namespace

Grads PreHookInPython::operator()(const Grads& grads) const {
  return in_python([&] {
    const Object function = Object::borrow(held->get());
    if (!function) return Grads();
    Object a = wrap_grads(grads);
    Object result(call_python(PyObject_CallOneArg, function.get(), a.get()));
    return read_grads(result.get(), grads.size());
  });
}
Grads PostHookInPython::operator()(const Grads& inputs, const Grads& outputs) const {
  return in_python([&] {
    const Object function = Object::borrow(held->get());
    if (!function) return Grads();
    Object a = wrap_grads(inputs), b = wrap_grads(outputs);
    Object result(
        call_python(PyObject_CallFunctionObjArgs, function.get(), a.get(), b.get(), nullptr));
    return read_grads(result.get(), inputs.size());
  });
}

NodePtr node_with_object(const Node* address) {
  const auto found = objects().find(const_cast<Node*>(address));
  return found == objects().end() ? nullptr : node_of(found->second);
}

PyObject* wrap_node(const NodePtr& node) {
  if (!node) return none();
  const auto known = [&]() -> PyObject* {
    const auto found = objects().find(node.get());
    return found == objects().end() ? nullptr : new_ref(found->second);
  };
  if (PyObject* object = known()) return object;
  auto* made = PyObject_GC_New(NodeObject, type_of(*node));
  if (!made) throw PythonError{};
  new (&made->node) NodePtr(node);
  Object object(reinterpret_cast<PyObject*>(made));
  // Making one may let other threads run, one of which was quicker then.
  if (PyObject* other = known()) return other;
  objects()[node.get()] = object.get();
  PyObject_GC_Track(object.get());
  return object.release();
}

const NodePtr& unwrap_node(const char* op, PyObject* object) {
  check<ErrorKind::Type>(PyObject_TypeCheck(object, node_type), OpName(op),
                         "expected a node of the graph, got ", type_text(object));
  return node_of(object);
}

void init_node_types(PyObject* module) {
  PyType_Slot node_slots[] = {
      {Py_tp_dealloc, slot(&deallocate)},
      {Py_tp_traverse, slot(&traverse)},
      {Py_tp_clear, slot(&clear)},
      {Py_tp_methods, node_methods},
      {Py_tp_getset, node_properties},
      {Py_tp_call, slot(&call)},
      {Py_tp_getattro, slot(&get_attribute)},
      {},
  };
  PyType_Spec node_spec = {"treadle.autograd.graph.Node", sizeof(NodeObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE |
                               Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           node_slots};
  node_type = reinterpret_cast<PyTypeObject*>(Object(PyType_FromSpec(&node_spec)).release());
  checked(PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(node_type)));
}

}  // namespace treadle::python
