// Custom functions: operators whose forward and backward are written in Python.
//
// `apply(function_class, ctx, ...)` runs forward unrecorded, then makes one node for the call. The node owns `ctx` and the saved
// tensors; `ctx` only looks at the node, so that nothing keeps itself alive.
#include "python_bindings/csrc/python.h"

#include <structmember.h>

#include <vector>

#include "autograd/meta.h"
#include "autograd/record.h"
#include "autograd/saved_tensor.h"
#include "autograd/view.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/methods.h"
#include "python_bindings/csrc/module.h"
#include "python_bindings/csrc/node_object.h"

namespace treadle::python {
namespace {

using autograd::Edge;
using autograd::Grads;
using autograd::NodePtr;

class PythonNode;

// What forward and backward of one call share: `ctx`.
struct ContextObject {
  PyObject_HEAD
  PyObject* dict;
  PyObject* weakrefs;
  PyObject* to_save;             // tuple given to save_for_backward(), until the node has taken it
  PyObject* dirty;               // tuple given to mark_dirty()
  PyObject* non_differentiable;  // tuple given to mark_non_differentiable()
  PyObject* needs_input_grad;
  PythonNode* node;  // null before the call is recorded and after the node is gone
  bool materialize;
};

PyTypeObject* context_type = nullptr;
ContextObject* context_of(PyObject* o) { return reinterpret_cast<ContextObject*>(o); }

class PythonNode final : public autograd::Node {
 public:
  PythonNode(PyObject* function_class, PyObject* ctx, std::string name)
      : class_(new_ref(function_class)), ctx_(new_ref(ctx)), name_(std::move(name)) {
    context_of(ctx)->node = this;
  }
  ~PythonNode() override {
    if (!interpreter_alive()) return;
    AcquireGil gil;
    context_of(ctx_)->node = nullptr;
    Py_DECREF(ctx_);
    Py_DECREF(class_);
  }

  std::string name() const override { return name_; }
  void release_saved() override {
    for (autograd::SavedTensor& s : saved) s.release();
  }
  Grads apply(Grads&& grads) override {
    return in_python([&] { return call_backward(grads); });
  }

  std::vector<autograd::SavedTensor> saved;

 private:
  Grads call_backward(const Grads& grads) {
    Object arguments(PyTuple_New(static_cast<Py_ssize_t>(grads.size()) + 1));
    PyTuple_SET_ITEM(arguments.get(), 0, new_ref(ctx_));
    for (size_t i = 0; i < grads.size(); ++i) {
      PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i) + 1, wrap(materialized(grads[i], i)));
    }
    Object function = attribute(class_, "backward");
    Object result(PyObject_CallObject(function.get(), arguments.get()));
    return read_result(PyTuple_Check(result.get()) ? std::move(result) : Object(PyTuple_Pack(1, result.get())));
  }

  // A gradient that never came, as zeros where ctx asks for them.
  Tensor materialized(const Tensor& grad, size_t i) const {
    return context_of(ctx_)->materialize ? autograd::or_zeros(grad, input(i)) : grad;
  }

  Grads read_result(Object result) const {
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(result.get()));
    const auto item = [&](size_t i) { return PyTuple_GET_ITEM(result.get(), static_cast<Py_ssize_t>(i)); };
    for (size_t i = num_outputs(); i < count; ++i) {
      check<ErrorKind::Runtime>(item(i) == Py_None, name_, ": expected backward to return ", num_outputs(),
                                " gradients, one for each argument of forward, got ", count);
    }
    check<ErrorKind::Runtime>(count >= num_outputs(), name_, ": expected backward to return ", num_outputs(),
                              " gradients, one for each argument of forward, got ", count);
    Grads grads;
    for (size_t i = 0; i < num_outputs(); ++i) {
      check<ErrorKind::Type>(item(i) == Py_None || is_tensor(item(i)), name_, ": expected backward to return tensors or None, got ",
                             type_text(item(i)), " for argument ", i);
      const bool wanted = edge(i).valid() && item(i) != Py_None;
      grads.push_back(wanted ? unwrap(item(i)) : Tensor());
    }
    return grads;
  }

  PyObject* class_;
  PyObject* ctx_;
  std::string name_;
};

// ---- the type of ctx ----

PyObject* context_new(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&] {
    Object object(type->tp_alloc(type, 0));
    context_of(object.get())->materialize = true;
    return object.release();
  });
}
int context_traverse(PyObject* self, visitproc visit, void* arg) {
  ContextObject* c = context_of(self);
  Py_VISIT(c->dict);
  Py_VISIT(c->to_save);
  Py_VISIT(c->dirty);
  Py_VISIT(c->non_differentiable);
  Py_VISIT(c->needs_input_grad);
  Py_VISIT(Py_TYPE(self));
  return 0;
}
int context_clear(PyObject* self) {
  ContextObject* c = context_of(self);
  Py_CLEAR(c->dict);
  Py_CLEAR(c->to_save);
  Py_CLEAR(c->dirty);
  Py_CLEAR(c->non_differentiable);
  Py_CLEAR(c->needs_input_grad);
  return 0;
}
void context_deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (context_of(self)->weakrefs) PyObject_ClearWeakRefs(self);
  context_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// Methods that keep the tuple of their arguments.
template <PyObject* ContextObject::*member>
PyObject* keep(PyObject* self, PyObject* args) {
  Py_XSETREF(context_of(self)->*member, new_ref(args));
  Py_RETURN_NONE;
}
PyObject* save_for_backward(PyObject* self, PyObject* args) {
  return guarded([&] {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* item = PyTuple_GET_ITEM(args, i);
      check<ErrorKind::Type>(item == Py_None || is_tensor(item), "save_for_backward: expected tensors or None, got ", type_text(item),
                             "; other values can be kept as attributes of ctx");
    }
    return keep<&ContextObject::to_save>(self, args);
  });
}
PyObject* set_materialize_grads(PyObject* self, PyObject* value) {
  return guarded([&] {
    context_of(self)->materialize = checked(PyObject_IsTrue(value)) != 0;
    return none();
  });
}
PyObject* saved_tensors(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    ContextObject* c = context_of(self);
    if (c->to_save) return new_ref(c->to_save);
    check<ErrorKind::Runtime>(c->node != nullptr, "saved_tensors: expected a call that is recorded and not yet freed");
    const NodePtr alive(c->node);
    Object tuple(PyTuple_New(static_cast<Py_ssize_t>(c->node->saved.size())));
    for (size_t i = 0; i < c->node->saved.size(); ++i) {
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), wrap(c->node->saved[i].unpack(*alive, "a saved tensor")));
    }
    return tuple.release();
  });
}
PyObject* needs_input_grad(PyObject* self, void*) {
  PyObject* needs = context_of(self)->needs_input_grad;
  return needs ? new_ref(needs) : PyTuple_New(0);
}

PyMethodDef context_methods[] = {
    {"save_for_backward", save_for_backward, METH_VARARGS, "Keeps tensors for backward, where they are ctx.saved_tensors."},
    {"mark_dirty", keep<&ContextObject::dirty>, METH_VARARGS, "Says that forward changed these arguments in place."},
    {"mark_non_differentiable", keep<&ContextObject::non_differentiable>, METH_VARARGS, "Says that these outputs have no gradient."},
    {"set_materialize_grads", set_materialize_grads, METH_O, "Whether backward is given zeros or None for a gradient that never came."},
    {},
};
PyGetSetDef context_properties[] = {
    {"saved_tensors", saved_tensors, nullptr, "The tensors given to save_for_backward().", nullptr},
    {"needs_input_grad", needs_input_grad, nullptr, "For each argument of forward, whether its gradient is wanted.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {},
};
PyMemberDef context_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(ContextObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ContextObject, weakrefs), READONLY, nullptr},
    {},
};

// ---- the call ----

// Where `item` itself is in a tuple; -1 where it is not, or there is no tuple.
Py_ssize_t find(PyObject* tuple, PyObject* item) {
  for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple); ++i) {
    if (PyTuple_GET_ITEM(tuple, i) == item) return i;
  }
  return -1;
}
bool holds(PyObject* tuple, PyObject* item) { return find(tuple, item) >= 0; }

// Gives outputs their history, one after the other.
class Recorder {
 public:
  Recorder(PyObject* ctx, PyObject* inputs, NodePtr node, size_t outputs)
      : context_(context_of(ctx)), inputs_(inputs), node_(std::move(node)), outputs_(outputs) {}

  // The object that the caller gets for `output` of forward.
  Object record(PyObject* output) {
    if (!is_tensor(output)) {
      node_->add_undefined_input();
      return Object::borrow(output);
    }
    const bool is_input = holds(inputs_, output), dirty = holds(context_->dirty, output);
    if (holds(context_->non_differentiable, output)) {
      node_->add_undefined_input();
      return is_input ? Object(wrap(fresh(unwrap(output)))) : Object::borrow(output);
    }
    if (dirty) {
      check<ErrorKind::Runtime>(is_input, node_->name(), ": expected mark_dirty() to be given arguments of forward");
      change_in_place(unwrap(output));
      return Object::borrow(output);
    }
    // An argument passed through, or a view of one, becomes a tensor of its own.
    const bool own = !is_input && !autograd::base_of(unwrap(output)).defined();
    Object result = own ? Object::borrow(output) : Object(wrap(fresh(unwrap(output))));
    autograd::set_history(unwrap(result.get()), node_);
    return result;
  }

 private:
  static Tensor fresh(const Tensor& t) { return alias_with_geometry(t, t.sizes(), t.strides(), t.storage_offset()); }

  void change_in_place(const Tensor& t) {
    const std::string name = node_->name();
    autograd::check_in_place(name.c_str(), t, true);
    if (autograd::base_of(t).defined()) {
      check<ErrorKind::Runtime>(outputs_ == 1, name, ": expected one output where a view is changed in place, got ", outputs_);
      autograd::rebase_history(t, node_);
      return;
    }
    autograd::set_history(t, node_);
    ++autograd::ensure_meta(t).history;
  }

  ContextObject* context_;
  PyObject* inputs_;
  NodePtr node_;
  size_t outputs_;
};

void save_tensors(ContextObject* context, PythonNode& node, PyObject* outputs) {
  if (!context->to_save) return;
  const auto count = static_cast<size_t>(PyTuple_GET_SIZE(context->to_save));
  node.saved.resize(count);
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = PyTuple_GET_ITEM(context->to_save, static_cast<Py_ssize_t>(i));
    if (item == Py_None) node.saved[i].save(Tensor());
    else if (const Py_ssize_t at = find(outputs, item); at >= 0) node.saved[i].save_output(unwrap(item), static_cast<uint32_t>(at));
    else node.saved[i].save(unwrap(item));
  }
  Py_CLEAR(context->to_save);
}

// Runs forward(ctx, *args), or forward(*args) and setup_context(ctx, args, output).
Object call_forward(PyObject* function_class, PyObject* ctx, PyObject* args, bool separate_setup) {
  const NoGrad no_grad;
  Object forward = attribute(function_class, "forward");
  if (separate_setup) {
    Object output(PyObject_CallObject(forward.get(), args));
    Object setup = attribute(function_class, "setup_context");
    Object done(PyObject_CallFunctionObjArgs(setup.get(), ctx, args, output.get(), nullptr));
    return output;
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  std::vector<PyObject*> all = {ctx};
  for (Py_ssize_t i = 0; i < n; ++i) all.push_back(PyTuple_GET_ITEM(args, i));
  return Object(PyObject_Vectorcall(forward.get(), all.data(), all.size(), nullptr));
}

// _apply_function(function_class, ctx, name, separate_setup, args)
PyObject* apply_function(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    check_internal(count == 5, "_apply_function takes five arguments");
    PyObject *function_class = arguments[0], *ctx = arguments[1], *args = arguments[4];
    const bool separate_setup = arguments[3] == Py_True;
    const Py_ssize_t n = PyTuple_GET_SIZE(args);

    Object needs(PyTuple_New(n));
    bool recorded = false;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PyTuple_GET_ITEM(args, i);
      const bool wanted = is_tensor(item) && unwrap(item).requires_grad();
      recorded = recorded || wanted;
      PyTuple_SET_ITEM(needs.get(), i, to_bool(wanted));
    }
    recorded = recorded && grad_enabled();
    Py_XSETREF(context_of(ctx)->needs_input_grad, needs.release());

    Object output = call_forward(function_class, ctx, args, separate_setup);
    const bool single = !PyTuple_Check(output.get());
    Object outputs = single ? Object(PyTuple_Pack(1, output.get())) : std::move(output);
    PyObject* dirty = context_of(ctx)->dirty;
    for (Py_ssize_t i = 0; dirty && i < PyTuple_GET_SIZE(dirty); ++i) {
      PyObject* item = PyTuple_GET_ITEM(dirty, i);
      check<ErrorKind::Type>(is_tensor(item), "mark_dirty: expected tensors, got ", type_text(item));
      unwrap(item).impl()->bump_version();
    }
    if (!recorded) {
      return single ? new_ref(PyTuple_GET_ITEM(outputs.get(), 0)) : outputs.release();
    }

    auto node = make_intrusive<PythonNode>(function_class, ctx, std::string(utf8(arguments[2])));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PyTuple_GET_ITEM(args, i);
      node->add_edge(is_tensor(item) && unwrap(item).requires_grad() ? autograd::gradient_edge(unwrap(item)) : Edge{});
    }
    const Py_ssize_t m = PyTuple_GET_SIZE(outputs.get());
    Recorder recorder(ctx, args, node, static_cast<size_t>(m));
    Object results(PyTuple_New(m));
    for (Py_ssize_t i = 0; i < m; ++i) {
      PyTuple_SET_ITEM(results.get(), i, recorder.record(PyTuple_GET_ITEM(outputs.get(), i)).release());
    }
    save_tensors(context_of(ctx), *node, results.get());
    return single ? new_ref(PyTuple_GET_ITEM(results.get(), 0)) : results.release();
  });
}

// _undifferentiable(tensor, name): the same values; going backward through them is an error.
PyObject* undifferentiable(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_internal(count == 2 && is_tensor(arguments[0]), "_undifferentiable takes a tensor and a name");
    const Tensor& t = unwrap(arguments[0]);
    const Tensor result = alias_with_geometry(t, t.sizes(), t.strides(), t.storage_offset());
    const std::string name(utf8(arguments[1]));
    autograd::set_history(result, NodePtr(new autograd::ErrorNode(
                                      name, ErrorKind::Runtime,
                                      name + ": expected to be differentiated once, as once_differentiable says, got a second time")));
    return wrap(result);
  });
}

}  // namespace

void init_function_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, slot(&context_new)},
      {Py_tp_dealloc, slot(&context_deallocate)},
      {Py_tp_traverse, slot(&context_traverse)},
      {Py_tp_clear, slot(&context_clear)},
      {Py_tp_methods, context_methods},
      {Py_tp_getset, context_properties},
      {Py_tp_members, context_members},
      {},
  };
  PyType_Spec spec = {"treadle.autograd.FunctionContext", sizeof(ContextObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  context_type = reinterpret_cast<PyTypeObject*>(Object(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "_FunctionContext", reinterpret_cast<PyObject*>(context_type)));
  static PyMethodDef functions[] = {
      {"_apply_function", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&apply_function)), METH_FASTCALL, nullptr},
      {"_undifferentiable", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&undifferentiable)), METH_FASTCALL, nullptr},
      {},
  };
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace treadle::python
