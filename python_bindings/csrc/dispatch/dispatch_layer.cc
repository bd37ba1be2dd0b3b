// A call on Layer::Dispatch: the choice of a handler, its arguments, and the conversion of its
// result.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "aten/ops/detach.h"
#include "autograd/view.h"
#include "core/dispatch/dispatcher.h"
#include "python_bindings/csrc/autograd/node_object.h"
#include "python_bindings/csrc/dispatch/dispatch_modes.h"
#include "python_bindings/csrc/library/defined_operator.h"

namespace treadle::python {
namespace {

template <class F>
void each_tensor(const Stack& stack, F&& f) {
  for (const Value& v : stack) {
    if (v.is<Tensor>()) f(v.as<Tensor>());
    if (!v.is<Value::Tensors>()) continue;
    for (const Tensor& t : v.as<Value::Tensors>()) {
      if (t.defined()) f(t);
    }
  }
}

// The innermost mode, closed while it handles a call.
class ModeOff {
 public:
  ModeOff() : mode_(dispatch_modes().back()) {
    dispatch_modes().pop_back();
    include_dispatch();
  }
  ~ModeOff() {
    dispatch_modes().push_back(mode_);
    include_dispatch();
  }
  ModeOff(const ModeOff&) = delete;
  ModeOff& operator=(const ModeOff&) = delete;
  PyObject* mode() const { return mode_; }

 private:
  PyObject* mode_;
};

// A handler's operators run below autograd; the profiler sees them.
class InHandler {
 public:
  InHandler() : below_(layers_down_to(Layer::Autograd)) {
    layer_state().excluded &= static_cast<LayerMask>(~layer_bit(Layer::Profiler));
  }

 private:
  BelowLayers below_;
};

class TakenCall {
 public:
  // `below` says whether autograd has been passed.
  TakenCall(const Operator& op, Stack& stack, bool below)
      : op_(LibraryOperator::of(const_cast<Operator&>(op))),
        stack_(stack),
        below_(below),
        recorded_(below && grad_enabled() && !inference_enabled()) {}

  // False if there is no handler.
  bool run() {
    std::vector<Object> asked;
    each_tensor(stack_, [&](const Tensor& t) {
      if (t.layers() & layer_bit(Layer::Dispatch)) add(asked, Object(wrap(t)));
    });
    if (dispatch_modes().empty() && asked.empty()) return false;
    const Object types(PyTuple_New(static_cast<Py_ssize_t>(asked.size())));
    for (size_t i = 0; i < asked.size(); ++i) {
      PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                       new_ref(reinterpret_cast<PyObject*>(Py_TYPE(asked[i].get()))));
    }
    const LibraryOperator::Shown& shown = op_.shown();
    const Stack arguments = shown.op->arguments_of(op_, stack_);
    const LibraryOperator::PythonCall call = shown.op->python_call(arguments);
    std::string refused;
    const auto answers = [&](PyObject* who) {
      const Object method(PyObject_GetAttrString(who, "__torch_dispatch__"));
      const InHandler in_handler;
      const Object result(call_python(PyObject_CallFunctionObjArgs, method.get(),
                                      shown.overload.get(), types.get(), call.args.get(),
                                      call.kwargs.get(), nullptr));
      if (result.get() == Py_NotImplemented) {
        refused += str(refused.empty() ? "" : ", ", Py_TYPE(who)->tp_name);
        return false;
      }
      const char* const name = Py_TYPE(who)->tp_name;
      const std::string handler = str("__torch_dispatch__ of ", name);
      take(shown.op->results_of(result.get(), arguments, handler.c_str()), name);
      return true;
    };
    if (!dispatch_modes().empty()) {
      const ModeOff off;
      if (answers(off.mode())) return true;
    }
    for (const Object& tensor : asked) {
      if (answers(tensor.get())) return true;
    }
    fail<ErrorKind::Type>(OpName(op_.name()),
                          "expected one of the modes and classes that implement "
                          "__torch_dispatch__ to handle it, got NotImplemented from all of them: ",
                          refused);
  }

 private:
  // One tensor of each class, subclasses before their bases.
  static void add(std::vector<Object>& asked, Object tensor) {
    PyTypeObject* const type = Py_TYPE(tensor.get());
    if (!class_dispatches(type)) return;
    auto place = asked.end();
    for (auto it = asked.begin(); it != asked.end(); ++it) {
      if (Py_TYPE(it->get()) == type) return;
      if (place == asked.end() && PyType_IsSubtype(type, Py_TYPE(it->get()))) place = it;
    }
    asked.insert(place, std::move(tensor));
  }

  void take(Stack results, const char* who) {
    for (size_t i = 0; i < results.size(); ++i) {
      if (op_.schema().returns[i].type.writes()) continue;
      settle(results[i], op_.schema().returns[i].type, who);
    }
    stack_ = std::move(results);
  }

  void settle(Value& value, const schema::Type& type, const char* who) const {
    const bool is_view = type.alias.has_value();
    if (!recorded_ && !is_view) return;
    if (value.is<Tensor>()) {
      Tensor t = own(value.as<Tensor>(), who);
      // Views that a kernel makes are marked as such by autograd; those in a list by the caller.
      // Here they may be views of substitutes.
      const Operator& op = op_.op();
      if (is_view && !below_ && op.entry().seen == Seen::Unrecorded) t = viewed(std::move(t));
      value = std::move(t);
    } else if (value.is<Value::Tensors>()) {
      Value::Tensors list = value.as<Value::Tensors>();
      for (Tensor& t : list) t = own(std::move(t), who);
      value = std::move(list);
    }
  }

  Tensor viewed(Tensor t) const {
    Tensor self;
    each_tensor(stack_, [&](const Tensor& argument) {
      if (!self.defined()) self = argument;
    });
    return self.defined() ? autograd::as_view(self, std::move(t)) : t;
  }

  // A tensor that autograd can give a history to: one without, and not an argument.
  Tensor own(Tensor t, const char* who) const {
    bool known = t.requires_grad() || autograd::view_of(t);
    each_tensor(stack_, [&](const Tensor& argument) { known |= argument.is_same(t); });
    if (!known) return t;
    if (!(t.layers() & layer_bit(Layer::Dispatch)))
      return alias_with_geometry(t, t.sizes(), t.strides(), t.storage_offset());
    const ExcludeLayers below(Layer::Autograd);
    const bool detaches = &op_.op() == &aten::ops::detach::op;
    const Tensor made = detaches ? t : aten::detach(t);
    check<ErrorKind::Runtime>(!made.is_same(t) && !made.requires_grad(), OpName(op_.name()),
                              "expected __torch_dispatch__ of ", who,
                              " to return a new tensor, got one that it was given, or that has a "
                              "history, and whose detach() is not another one");
    return made;
  }

  LibraryOperator& op_;
  Stack& stack_;
  const bool below_, recorded_;
};

bool needs_recording(const Stack& stack) {
  bool needed = false;
  each_tensor(stack, [&](const Tensor& t) { needed |= t.requires_grad(); });
  return needed && grad_enabled() && !inference_enabled();
}

void call_torch_dispatch(const Operator& op, Stack& stack) {
  const bool below = layer_state().excluded & layer_bit(Layer::Autograd);
  if (const DynamicOperator* dynamic = DynamicOperator::of(op)) {
    if (dynamic->is_composite(stack)) {
      dynamic->run_kernel(stack);
      return;
    }
  } else {
    const bool wanted = std::exchange(wants_parts(), false) && op.info().parts;
    if (wanted || (op.entry().seen == Seen::Unrecorded && !below && needs_recording(stack))) {
      op.info().parts(op, stack);
      return;
    }
  }
  std::vector<std::pair<Tensor, uint32_t>> written;
  const bool taken = in_python([&] {
    const schema::FunctionSchema& schema = LibraryOperator::of(const_cast<Operator&>(op)).schema();
    for (size_t i = 0; i < schema.arguments.size(); ++i) {
      if (!schema.arguments[i].type.writes()) continue;
      each_tensor({stack[i]}, [&](const Tensor& t) { written.emplace_back(t, t.version()); });
    }
    return TakenCall(op, stack, below).run();
  });
  if (!taken) {
    const ExcludeLayers below(Layer::Dispatch);
    op.call_boxed(stack);
    return;
  }
  // A class may write the memory that its tensors stand for, and not the tensors.
  for (const auto& [t, version] : written) {
    if (t.version() == version) t.impl()->bump_version();
  }
}

}  // namespace

void add_dispatch_layer() {
  static bool added = false;  // under the interpreter lock
  if (added) return;
  added = true;
  Dispatcher::instance().register_layer_fallback(
      Layer::Dispatch, boxed_kernel<&call_torch_dispatch>,
      KernelOrigin{KernelSource::Fallback, __FILE__, __LINE__, "__torch_dispatch__"},
      Dispatcher::Wraps::Seen);
}

}  // namespace treadle::python
