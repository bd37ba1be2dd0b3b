// The members of Tensor for autograd: grad, grad_fn, requires_grad, backward(), hooks, data.
//
// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include "autograd/alias.h"
#include "autograd/graph/accumulate_grad.h"
#include "autograd/graph/engine.h"
#include "autograd/meta.h"
#include "core/tensor/layout_tensor.h"
#include "core/threads/quiescence.h"
#include "python_bindings/csrc/arguments/arg_parser.h"
#include "python_bindings/csrc/autograd/node_object.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/dispatch/overrides.h"
#include "python_bindings/csrc/tensors/methods.h"

namespace treadle::python {
namespace {

// ---- attributes ----
//
// Code that receives a value held by a tensor may attach to it an object that leads back to the
// tensor. So the collector tracks the tensor from then on.

// An attribute that every tensor has cannot be deleted.
void require_value(const char* attribute, PyObject* value) {
  check<ErrorKind::Runtime>(value != nullptr, OpName(attribute),
                            "expected a value, got a deletion");
}

// The tensor that autograd knows: `t` itself, or the values of one of another layout.
Tensor recorded(const Tensor& t) { return t.is_strided() ? t : values_of(t); }
// The gradient of such values as a tensor of the layout, at the same places.
Tensor as_recorded(const Tensor& t, const Tensor& grad) {
  return t.is_strided() || !grad.defined() ? grad : with_values(t, grad);
}

PyObject* get_grad(PyObject* self, void*) {
  track(self);
  return guarded([&] {
    const Tensor& t = unwrap(self);
    return wrap(as_recorded(t, autograd::grad_of(recorded(t))));
  });
}
int set_grad(PyObject* self, PyObject* value, void*) {
  track(self);
  return guarded([&]() -> int {
    const Tensor t = recorded(unwrap(self));
    if (!value || value == Py_None) {
      autograd::set_grad(t, Tensor());
      return 0;
    }
    check<ErrorKind::Type>(is_tensor(value), OpName("grad"), "expected a tensor or None, got ",
                           type_text(value));
    check<ErrorKind::Runtime>(value != self, OpName("grad"),
                              "expected a tensor other than the one it is the gradient of");
    const Tensor& grad = unwrap(value);
    autograd::set_grad(t, unwrap(self).is_strided() ? grad : recorded(grad));
    return 0;
  });
}
PyObject* get_grad_fn(PyObject* self, void*) {
  track(self);
  return guarded([&]() -> PyObject* {
    const Tensor t = recorded(unwrap(self));
    return autograd::meta_of(t) ? wrap_node(autograd::grad_fn(t)) : none();
  });
}
PyObject* get_requires_grad(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& t = unwrap(self);
    return to_bool(t.is_strided() ? t.requires_grad() : values_of(t).requires_grad());
  });
}
// Operators of other threads may be asking whether they are recorded.
void change_requires_grad(const char* op, const Tensor& tensor, bool value) {
  const Tensor t = recorded(tensor);
  if (t.requires_grad() == value) return;
  const Quiescence quiet(op);
  autograd::set_requires_grad(t, value);
}
int set_requires_grad(PyObject* self, PyObject* value, void*) {
  return guarded([&]() -> int {
    require_value("requires_grad", value);
    check<ErrorKind::Type>(PyBool_Check(value), OpName("requires_grad"), "expected a bool, got ",
                           type_text(value));
    change_requires_grad("requires_grad", unwrap(self), value == Py_True);
    return 0;
  });
}
PyObject* get_is_leaf(PyObject* self, void*) {
  return guarded([&] { return to_bool(autograd::is_leaf(recorded(unwrap(self)))); });
}
PyObject* get_retains_grad(PyObject* self, void*) {
  return guarded([&] {
    const Tensor t = recorded(unwrap(self));
    const auto* meta = autograd::meta_of(t);
    return to_bool(meta && meta->retains_grad);
  });
}
PyObject* get_version(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& t = unwrap(self);
    check<ErrorKind::Runtime>(!t.impl()->is_inference(), OpName("_version"),
                              "expected a tensor that counts its versions, got an "
                              "inference tensor");
    return PyLong_FromUnsignedLong(t.version());
  });
}
PyObject* get_output_nr(PyObject* self, void*) {
  return guarded([&] {
    uint32_t number = 0;
    if (const auto* meta = autograd::meta_of(unwrap(self))) {
      const std::lock_guard lock(meta->lock);
      number = meta->output_nr;
    }
    return PyLong_FromUnsignedLong(number);
  });
}
PyObject* get_base(PyObject* self, void*) {
  track(self);
  return guarded([&] { return wrap(autograd::base_of(unwrap(self))); });
}

// The same elements without history, and counting its writes apart.
PyObject* get_data(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& t = unwrap(self);
    Tensor alias = autograd::alias_without_history(t);
    alias.impl()->detach_version();
    return wrap(std::move(alias));
  });
}
// Makes the tensor another one's elements, keeping its identity.
int set_data(PyObject* self, PyObject* value, void*) {
  return guarded([&]() -> int {
    require_value("data", value);
    check<ErrorKind::Type>(is_tensor(value), OpName("data"), "expected a tensor, got ",
                           type_text(value));
    const Tensor &t = unwrap(self), &source = unwrap(value);
    check<ErrorKind::Runtime>(
        !t.requires_grad() || autograd::is_differentiable(source.dtype()), OpName("data"),
        "expected a floating or complex tensor, as this one requires grad, got dtype ",
        source.dtype());
    check<ErrorKind::Runtime>(t.layout() == source.layout(), OpName("data"),
                              "expected a tensor of layout ", t.layout(), ", got ",
                              source.layout());
    const Quiescence quiet("data");
    if (!t.is_strided()) {
      check<ErrorKind::Runtime>(t.sizes() == source.sizes() && t.dtype() == source.dtype() &&
                                    t.device() == source.device(),
                                OpName("data"), "expected a tensor like ", t, ", got ", source);
      static_cast<LayoutTensorImpl*>(t.impl())->take(*contents_of(source));
      return 0;
    }
    const bool is_alike =
        t.sizes() == source.sizes() && t.dtype() == source.dtype() && t.device() == source.device();
    if (!is_alike) autograd::forget_accumulator(t);
    t.impl()->set_storage(source.storage(), source.dtype());
    t.impl()->set_geometry(source.sizes(), source.strides(), source.storage_offset());
    t.impl()->set_lazy(source.impl()->is_conj(), source.impl()->is_neg());
    return 0;
  });
}

// ---- methods ----

const Param requires_grad_params[] = {{"self", Kind::Tensor},
                                      {"requires_grad", Kind::Bool, kDefault, 0, "True"}};
const Signature requires_grad_signature[] = {{requires_grad_params, 2, 2, 0, false}};
Function requires_grad_function = {"requires_grad_", requires_grad_signature, 1};

PyObject* requires_grad_(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                         PyObject* names) {
  return guarded([&] {
    Call<2> call(requires_grad_function, self, arguments, count, names);
    if (call.overridden()) return call.result();
    change_requires_grad("requires_grad_", call.tensor(0), call.boolean(1, true));
    return new_ref(self);
  });
}

const Param backward_params[] = {
    {"self", Kind::Tensor},
    {"gradient", Kind::Tensor, kNullable | kDefault, 0, "None"},
    {"retain_graph", Kind::Bool, kNullable | kDefault, 0, "None"},
    {"create_graph", Kind::Bool, kDefault, 0, "False"},
    {"inputs", Kind::Any, kNullable | kDefault, 0, "None"},
};
const Signature backward_signature[] = {{backward_params, 5, 5, 0, false}};
Function backward_function = {"backward", backward_signature, 1};

// Whether there are edges of the graph among the inputs: a tuple with a node in it, or several.
bool has_edges(PyObject* inputs) {
  if (is_tensor(inputs)) return false;
  Object items(PySequence_Tuple(inputs));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    if (!is_tensor(PyTuple_GET_ITEM(items.get(), i))) return true;
  }
  return false;
}

std::vector<Tensor> read_inputs(PyObject* inputs) {
  if (is_tensor(inputs)) return {unwrap(inputs)};
  Object items(PySequence_Tuple(inputs));
  check<ErrorKind::Runtime>(PyTuple_GET_SIZE(items.get()) > 0, OpName("backward"),
                            "expected at least one tensor in inputs, got none");
  return detail::read_tensors("backward", items.get());
}

PyObject* backward(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    Call<5> call(backward_function, self, arguments, count, names);
    if (call.overridden()) return call.result();
    // Edges, and tensors of other layouts, the function in Python replaces.
    if (!call.tensor(0).is_strided() || (call.has(4) && has_edges(call.object(4)))) {
      Object function = import_attribute("treadle.autograd", "backward");
      const auto or_none = [&](size_t i) { return call.object(i) ? call.object(i) : Py_None; };
      PyObject* all[] = {self,
                         or_none(1),
                         or_none(2),
                         call.object(3) ? call.object(3) : Py_False,
                         Py_None /* grad_variables */,
                         or_none(4)};
      return Object(call_python(PyObject_Vectorcall, function.get(), all, 6, nullptr)).release();
    }
    const Tensor root = call.tensor(0), gradient = call.tensor(1);
    const bool create_graph = call.boolean(3);
    const bool retain_graph = call.maybe_boolean(2).value_or(create_graph);
    const std::vector<Tensor> inputs =
        call.has(4) ? read_inputs(call.object(4)) : std::vector<Tensor>();
    {
      const ReleaseGil released;
      autograd::backward({&root, 1}, {&gradient, 1}, retain_graph, create_graph, inputs);
    }
    return none();
  });
}

PyObject* retain_grad(PyObject* self, PyObject*) {
  return guarded([&] {
    autograd::retain_grad(recorded(unwrap(self)));
    return none();
  });
}
PyObject* detach_in_place(PyObject* self, PyObject*) {
  return guarded([&] {
    const Quiescence quiet("detach_");
    autograd::detach_in_place(recorded(unwrap(self)));
    return new_ref(self);
  });
}
PyObject* is_view(PyObject* self, PyObject*) {
  return guarded([&] { return to_bool(autograd::base_of(unwrap(self)).defined()); });
}
void require_strided(const char* name, const Tensor& t) {
  check<ErrorKind::NotImplemented>(
      t.is_strided(), OpName(name), "expected a strided tensor, got one of layout ",
      name_of(t.layout()), "; a hook on its values() sees their gradient");
}
PyObject* register_hook(PyObject* self, PyObject* function) {
  return guarded([&] {
    check<ErrorKind::Type>(PyCallable_Check(function), OpName("register_hook"),
                           "expected a function, got ", type_text(function));
    const Tensor& t = unwrap(self);
    require_strided("register_hook", t);
    const TensorHookInPython hook(function);
    const auto id = autograd::add_hook(t, hook, hook.held.get());
    track(self);
    return wrap_hook_handle(self, hook, id);
  });
}
PyObject* register_post_accumulate_hook(PyObject* self, PyObject* function) {
  return guarded([&] {
    check<ErrorKind::Type>(PyCallable_Check(function), OpName("register_post_accumulate_grad_hook"),
                           "expected a function, got ", type_text(function));
    const Tensor& t = unwrap(self);
    require_strided("register_post_accumulate_grad_hook", t);
    const LeafHookInPython hook(function);
    const auto id = autograd::add_post_accumulate_hook(t, hook, hook.held.get());
    track(self);
    return wrap_hook_handle(self, hook, id);
  });
}

}  // namespace

Tensor with_requires_grad(Tensor tensor, bool requires_grad) {
  if (requires_grad) autograd::set_requires_grad(tensor, true);
  return tensor;
}

void add_autograd_properties(std::vector<PyGetSetDef>& properties) {
  properties.insert(
      properties.end(),
      {
          {"grad", get_grad, set_grad, "The accumulated gradient, or None.", nullptr},
          {"_grad", get_grad, set_grad, "The same, as older programs write it.", nullptr},
          {"grad_fn", get_grad_fn, nullptr, "The node that made the tensor; None for a leaf.",
           nullptr},
          {"requires_grad", get_requires_grad, set_requires_grad,
           "Whether operations on the tensor are recorded.", nullptr},
          {"is_leaf", get_is_leaf, nullptr,
           "Whether the tensor was made by the user and not by an operation.", nullptr},
          {"retains_grad", get_retains_grad, nullptr,
           "Whether a tensor that is no leaf keeps its gradient.", nullptr},
          {"_version", get_version, nullptr, "How often the values were written in place.",
           nullptr},
          {"output_nr", get_output_nr, nullptr, "Which output of grad_fn the tensor is.", nullptr},
          {"_base", get_base, nullptr, "The tensor this one is a view of, or None.", nullptr},
          {"data", get_data, set_data, "The elements without history.", nullptr},
      });
}

void add_autograd_methods(std::vector<PyMethodDef>& methods) {
  methods.insert(
      methods.end(),
      {
          fast_method("backward", &backward,
                      "backward($self, gradient=None, retain_graph=None, create_graph=False, "
                      "inputs=None)\n--\n\nAdds the gradients "
                      "of this tensor to `grad` of the leaves it was computed from."),
          fast_method("requires_grad_", &requires_grad_,
                      "requires_grad_($self, requires_grad=True)\n--\n\nSets requires_grad; "
                      "returns the tensor."),
          without_arguments<"retain_grad", &retain_grad>(
              "Keeps the gradient of a tensor that is no leaf."),
          without_arguments<"detach_", &detach_in_place>(
              "Cuts the tensor off its history, in place."),
          without_arguments<"_is_view", &is_view>(
              "Whether autograd knows the tensor as a view of another."),
          with_argument<"register_hook", &register_hook>(
              "register_hook($self, hook)\n--\n\nCalls hook(grad) when the gradient is known; what "
              "it returns replaces the gradient."),
          with_argument<"register_post_accumulate_grad_hook", &register_post_accumulate_hook>(
              "register_post_accumulate_grad_hook($self, hook)\n--\n\nCalls hook(tensor) after "
              "`grad` of a leaf was added to."),
      });
}

}  // namespace treadle::python
