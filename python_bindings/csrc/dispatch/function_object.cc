// Custom functions: operators whose forward and backward are written in Python.
//
// Each call makes one node. It owns `ctx` and the saved values.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/dispatch/function_object.h"

#include <structmember.h>

#include <vector>

#include "autograd/alias.h"
#include "autograd/graph/visit.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/module.h"
#include "python_bindings/csrc/tensors/methods.h"

namespace treadle::python {
namespace {

using autograd::Edge;
using autograd::Grads;
using autograd::NodePtr;

// The common state of forward and backward of one call: `ctx`.
struct ContextObject {
  PyObject_HEAD PyObject* dict;
  PyObject* weakrefs;
  PyObject* needs_input_grad;
  ContextNode* node;  // null before the call and after the node is gone
};

PyTypeObject* context_type = nullptr;
ContextObject* context_of(PyObject* o) { return reinterpret_cast<ContextObject*>(o); }

class PythonNode final : public ContextNode {
 public:
  PythonNode(PyObject* function_class, PyObject* ctx, std::string name)
      : ContextNode(ctx), class_(function_class), name_(std::move(name)) {}

  std::string name() const override { return name_; }
  void visit_held(autograd::OwnedWalk& walk) const override {
    ContextNode::visit_held(walk);
    walk.object(&class_);
  }

  Grads call_backward(const Grads& grads) override {
    return in_python([&] {
      std::vector<Object> wrapped;
      std::vector<PyObject*> arguments = {ctx()};
      for (const Tensor& grad : grads) {
        wrapped.emplace_back(wrap(grad));
        arguments.push_back(wrapped.back().get());
      }
      Object function = attribute(class_.get(), "backward");
      Object result(call_python(PyObject_Vectorcall, function.get(), arguments.data(),
                                arguments.size(), nullptr));
      return read_gradients(PyTuple_Check(result.get()) ? std::move(result)
                                                        : Object(PyTuple_Pack(1, result.get())));
    });
  }

 private:
  Grads read_gradients(Object result) const {
    Grads grads;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result.get()); ++i) {
      PyObject* item = PyTuple_GET_ITEM(result.get(), i);
      check<ErrorKind::Type>(item == Py_None || is_tensor(item), OpName(name_),
                             "expected backward to return tensors or None, got ", type_text(item),
                             " for argument ", int64_t{i});
      grads.push_back(item == Py_None ? Tensor() : unwrap(item));
    }
    return grads;
  }

  mutable HeldFunction class_;
  std::string name_;
};

// The node of a result that may not be differentiated again.
class OnceNode final : public autograd::Node {
 public:
  explicit OnceNode(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  Grads apply(Grads&&) override {
    fail<ErrorKind::Runtime>(
        OpName(name_),
        "expected to be differentiated once, as once_differentiable says, got a second time");
  }

 private:
  std::string name_;
};

// ---- the type of ctx ----

PyObject* context_new(PyTypeObject* type, PyObject*, PyObject*) { return type->tp_alloc(type, 0); }
int context_traverse(PyObject* self, visitproc visit, void* arg) {
  ContextObject* c = context_of(self);
  Py_VISIT(c->dict);
  Py_VISIT(c->needs_input_grad);
  Py_VISIT(Py_TYPE(self));
  return 0;
}
int context_clear(PyObject* self) {
  ContextObject* c = context_of(self);
  Py_CLEAR(c->dict);
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

autograd::FunctionContext& call_of(PyObject* self) {
  ContextNode* node = context_of(self)->node;
  check<ErrorKind::Runtime>(
      node != nullptr, OpName("ctx"),
      "expected to be used in the forward or backward of a call, got used after it");
  return node->context;
}

std::vector<Tensor> read_tuple(const char* op, PyObject* args) {
  std::vector<Tensor> tensors;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* item = PyTuple_GET_ITEM(args, i);
    check<ErrorKind::Type>(item == Py_None || is_tensor(item), OpName(op),
                           "expected tensors or None, got ", type_text(item),
                           "; other values can be kept as attributes of ctx");
    tensors.push_back(item == Py_None ? Tensor() : unwrap(item));
  }
  return tensors;
}

PyObject* save_for_backward(PyObject* self, PyObject* args) {
  return guarded([&] {
    call_of(self).save_for_backward(read_tuple("save_for_backward", args));
    return none();
  });
}
PyObject* mark_dirty(PyObject* self, PyObject* args) {
  return guarded([&] {
    call_of(self).mark_dirty(read_tuple("mark_dirty", args));
    return none();
  });
}
PyObject* mark_non_differentiable(PyObject* self, PyObject* args) {
  return guarded([&] {
    call_of(self).mark_non_differentiable(read_tuple("mark_non_differentiable", args));
    return none();
  });
}
PyObject* set_materialize_grads(PyObject* self, PyObject* value) {
  return guarded([&] {
    call_of(self).set_materialize_grads(checked(PyObject_IsTrue(value)) != 0);
    return none();
  });
}
PyObject* set_materialize_non_diff_grads(PyObject* self, PyObject* value) {
  return guarded([&] {
    call_of(self).set_materialize_non_diff_grads(checked(PyObject_IsTrue(value)) != 0);
    return none();
  });
}
PyObject* saved_tensors(PyObject* self, void*) {
  return guarded([&] {
    const NodePtr alive(context_of(self)->node);
    return wrap(call_of(self).saved_tensors());
  });
}
PyObject* needs_input_grad(PyObject* self, void*) {
  PyObject* needs = context_of(self)->needs_input_grad;
  return needs ? new_ref(needs) : PyTuple_New(0);
}

PyMethodDef context_methods[] = {
    {"save_for_backward", save_for_backward, METH_VARARGS,
     "Keeps tensors for backward, where they are ctx.saved_tensors."},
    {"mark_dirty", mark_dirty, METH_VARARGS, "Says that forward changed these arguments in place."},
    {"mark_non_differentiable", mark_non_differentiable, METH_VARARGS,
     "Says that these outputs have no gradient."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "Whether backward is given zeros or None for a gradient that never came."},
    {"set_materialize_non_diff_grads", set_materialize_non_diff_grads, METH_O,
     "Whether zeros stand for the gradients of outputs without one, too."},
    {},
};
PyGetSetDef context_properties[] = {
    {"saved_tensors", saved_tensors, nullptr, "The tensors given to save_for_backward().", nullptr},
    {"needs_input_grad", needs_input_grad, nullptr,
     "For each argument of forward, whether its gradient is wanted.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {},
};
PyMemberDef context_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(ContextObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ContextObject, weakrefs), READONLY, nullptr},
    {},
};

// ---- the call ----

// Runs forward(ctx, *args), or forward(*args) and setup_context(ctx, args, output).
Object call_forward(PyObject* function_class, PyObject* ctx, PyObject* args, bool separate_setup) {
  const NoGrad no_grad;
  Object forward = attribute(function_class, "forward");
  if (separate_setup) {
    Object output(call_python(PyObject_CallObject, forward.get(), args));
    Object setup = attribute(function_class, "setup_context");
    Object done(
        call_python(PyObject_CallFunctionObjArgs, setup.get(), ctx, args, output.get(), nullptr));
    return output;
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  std::vector<PyObject*> all = {ctx};
  for (Py_ssize_t i = 0; i < n; ++i) all.push_back(PyTuple_GET_ITEM(args, i));
  return Object(call_python(PyObject_Vectorcall, forward.get(), all.data(), all.size(), nullptr));
}

// _apply_function(function_class, ctx, name, separate_setup, args)
PyObject* apply_function(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    check_internal(count == 5, "_apply_function takes five arguments");
    PyObject *function_class = arguments[0], *ctx = arguments[1], *args = arguments[4];
    const bool separate_setup = arguments[3] == Py_True;
    const Py_ssize_t n = PyTuple_GET_SIZE(args);

    auto node = make_intrusive<PythonNode>(function_class, ctx, std::string(utf8(arguments[2])));
    std::vector<Tensor> inputs;
    Object needs(PyTuple_New(n));
    const bool recording = grad_enabled();
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PyTuple_GET_ITEM(args, i);
      const bool wanted = is_tensor(item) && unwrap(item).requires_grad();
      if (is_tensor(item)) inputs.push_back(unwrap(item));
      node->add_edge(wanted && recording ? autograd::gradient_edge(unwrap(item)) : Edge{});
      PyTuple_SET_ITEM(needs.get(), i, to_bool(wanted));
    }
    node->set_needs_input_grad(needs.release());

    Object output = call_forward(function_class, ctx, args, separate_setup);
    const bool single = !PyTuple_Check(output.get());
    Object outputs = single ? Object(PyTuple_Pack(1, output.get())) : std::move(output);
    const Py_ssize_t m = PyTuple_GET_SIZE(outputs.get());
    std::vector<Tensor> tensors;
    for (Py_ssize_t i = 0; i < m; ++i) {
      PyObject* item = PyTuple_GET_ITEM(outputs.get(), i);
      tensors.push_back(is_tensor(item) ? unwrap(item) : Tensor());
    }
    tensors = autograd::finish_function(node.get(), inputs, std::move(tensors));
    Object results(PyTuple_New(m));
    for (Py_ssize_t i = 0; i < m; ++i) {
      const Tensor& t = tensors[static_cast<size_t>(i)];
      PyTuple_SET_ITEM(results.get(), i,
                       t.defined() ? wrap(t) : new_ref(PyTuple_GET_ITEM(outputs.get(), i)));
    }
    return single ? new_ref(PyTuple_GET_ITEM(results.get(), 0)) : results.release();
  });
}

// _undifferentiable(tensor, name): the same values; going backward through them is an error.
PyObject* undifferentiable(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_internal(count == 2 && is_tensor(arguments[0]),
                   "_undifferentiable takes a tensor and a name");
    const Tensor& t = unwrap(arguments[0]);
    const Tensor result = autograd::alias_without_history(t);
    autograd::set_history(result, make_intrusive<OnceNode>(std::string(utf8(arguments[1]))));
    return wrap(result);
  });
}

}  // namespace

Object new_context() { return Object(context_type->tp_alloc(context_type, 0)); }

ContextNode::ContextNode(PyObject* ctx) : ctx_(ctx) { context_of(ctx)->node = this; }
ContextNode::~ContextNode() {
  if (!interpreter_alive()) return;
  AcquireGil gil;
  context_of(ctx())->node = nullptr;
}
void ContextNode::visit_held(autograd::OwnedWalk& walk) const {
  FunctionNode::visit_held(walk);
  walk.object(&ctx_);
}
void ContextNode::set_needs_input_grad(PyObject* needs) {
  Py_XSETREF(context_of(ctx())->needs_input_grad, needs);
}

PyObject* context_of_node(const autograd::Node& node) {
  const auto* function = dynamic_cast<const ContextNode*>(&node);
  return function ? function->ctx() : nullptr;
}

void init_function_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, slot(&context_new)},           {Py_tp_dealloc, slot(&context_deallocate)},
      {Py_tp_traverse, slot(&context_traverse)}, {Py_tp_clear, slot(&context_clear)},
      {Py_tp_methods, context_methods},          {Py_tp_getset, context_properties},
      {Py_tp_members, context_members},          {},
  };
  PyType_Spec spec = {"treadle.autograd.FunctionContext", sizeof(ContextObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  context_type = reinterpret_cast<PyTypeObject*>(Object(PyType_FromSpec(&spec)).release());
  checked(
      PyModule_AddObjectRef(module, "_FunctionContext", reinterpret_cast<PyObject*>(context_type)));
  static PyMethodDef functions[] = {
      {"_apply_function", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&apply_function)),
       METH_FASTCALL, nullptr},
      {"_undifferentiable",
       reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&undifferentiable)), METH_FASTCALL,
       nullptr},
      {},
  };
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace treadle::python
