// The derivatives of operators that were defined at run time: a formula in Python, or a warning
// where it is missing.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph/visit.h"
#include "autograd/record.h"
#include "python_bindings/csrc/dispatch/function_object.h"
#include "python_bindings/csrc/library/defined_operator.h"

namespace treadle::python {

using autograd::Grads;

// One recorded call. Its edges are those of the positional arguments, one after the other; its
// inputs are those of the results. A list counts as many times as it has tensors.
class FormulaNode final : public ContextNode {
 public:
  static constexpr int kSingle = -1;

  FormulaNode(const LibraryOperator& op, PyObject* ctx)
      : ContextNode(ctx), op_(op), backward_(op.backward_.get()) {}
  std::string name() const override { return op_.node_name_; }
  void visit_held(autograd::OwnedWalk& walk) const override {
    ContextNode::visit_held(walk);
    walk.object(&backward_);
  }

  // Adds the edges of an argument, and returns its entry of ctx.needs_input_grad.
  Object add_argument(PyObject* o, bool is_list, std::vector<Tensor>& inputs) {
    if (!o || !is_list || o == Py_None) {
      arguments_.push_back(kSingle);
      return Object(to_bool(add_tensor(o, inputs)));
    }
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    arguments_.push_back(static_cast<int>(n));
    Object needs(PyList_New(n));
    for (Py_ssize_t i = 0; i < n; ++i)
      PyList_SET_ITEM(needs.get(), i, to_bool(add_tensor(PySequence_Fast_GET_ITEM(o, i), inputs)));
    return needs;
  }
  void set_given(size_t count) { given_ = count; }
  void add_result(int count) { results_.push_back(count); }

  Grads call_backward(const Grads& grads) override {
    return in_python([&] {
      check<ErrorKind::Runtime>(backward_.get() != Py_None, OpName(op_.name()),
                                "expected a derivative to go backward through, got an operator "
                                "without one\nuse register_autograd to give it one");
      std::vector<Object> held;
      std::vector<PyObject*> values = {nullptr, ctx()};
      size_t at = 0;
      for (const int count : results_) {
        if (count == kSingle) {
          held.emplace_back(wrap(grads[at++]));
        } else {
          Object list(PyList_New(count));
          for (int i = 0; i < count; ++i) PyList_SET_ITEM(list.get(), i, wrap(grads[at++]));
          held.push_back(std::move(list));
        }
        values.push_back(held.back().get());
      }
      const Object result(call_python(PyObject_Vectorcall, backward_.get(), values.data() + 1,
                                      (values.size() - 1) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                      nullptr));
      return read_gradients(PyTuple_Check(result.get()) ? result
                                                        : Object(PyTuple_Pack(1, result.get())));
    });
  }

 private:
  bool add_tensor(PyObject* o, std::vector<Tensor>& inputs) {
    const bool tensor = o && is_tensor(o);
    const bool needs = tensor && unwrap(o).requires_grad();
    if (tensor) inputs.push_back(unwrap(o));
    add_edge(needs ? autograd::gradient_edge(unwrap(o)) : autograd::Edge{});
    return needs;
  }

  Tensor gradient(PyObject* o, size_t argument) const {
    check<ErrorKind::Type>(o == Py_None || is_tensor(o), OpName(op_.name()),
                           "expected backward to return tensors or None, got ", type_text(o),
                           " for argument '", op_.schema().arguments[argument].name, "'");
    return o == Py_None ? Tensor() : unwrap(o);
  }

  Grads read_gradients(const Object& result) const {
    const auto n = static_cast<size_t>(PyTuple_GET_SIZE(result.get()));
    const auto item = [&](size_t i) {
      return PyTuple_GET_ITEM(result.get(), static_cast<Py_ssize_t>(i));
    };
    bool fits = n >= given_;
    for (size_t i = arguments_.size(); i < n; ++i) fits &= item(i) == Py_None;
    check<ErrorKind::Runtime>(fits, OpName(op_.name()), "expected backward to return ", given_,
                              given_ == 1 ? " gradient" : " gradients",
                              ", one for each argument, got ", n);
    Grads grads;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      PyObject* o = i < n ? item(i) : Py_None;
      if (arguments_[i] == kSingle) {
        grads.push_back(gradient(o, i));
        continue;
      }
      const bool list = PyList_Check(o) || PyTuple_Check(o);
      check<ErrorKind::Runtime>(
          o == Py_None || (list && PySequence_Fast_GET_SIZE(o) == arguments_[i]),
          OpName(op_.name()), "expected backward to return None or a list of ", arguments_[i],
          " gradients for argument '", op_.schema().arguments[i].name, "', got ", type_text(o));
      for (int k = 0; k < arguments_[i]; ++k)
        grads.push_back(o == Py_None ? Tensor() : gradient(PySequence_Fast_GET_ITEM(o, k), i));
    }
    return grads;
  }

  const LibraryOperator& op_;
  mutable HeldFunction backward_;
  size_t given_ = 0;            // arguments up to the last that was not left out
  std::vector<int> arguments_;  // kSingle, or how many tensors the list has
  std::vector<int> results_;
};

namespace {

constinit Kept names_of_setup, names_of_setup_with_keywords;

// setup_context(ctx=, inputs=, output=), with keyword_only_inputs= where the schema has some.
void set_up(PyObject* function, PyObject* ctx, PyObject* inputs, PyObject* keywords,
            PyObject* output) {
  PyObject* const names =
      keywords ? names_of_setup_with_keywords.get([] {
        return Object(Py_BuildValue("(ssss)", "ctx", "inputs", "keyword_only_inputs", "output"));
      })
               : names_of_setup.get(
                     [] { return Object(Py_BuildValue("(sss)", "ctx", "inputs", "output")); });
  PyObject* with_keywords[] = {ctx, inputs, keywords, output};
  PyObject* without[] = {ctx, inputs, output};
  const Object done(
      call_python(PyObject_Vectorcall, function, keywords ? with_keywords : without, 0, names));
}

}  // namespace

Object LibraryOperator::differentiate(Slots slots) {
  const size_t positional = signature_.positional, n = arguments_.size();
  const Object ctx = new_context();
  auto node = make_intrusive<FormulaNode>(*this, ctx.get());
  Object needs(PyTuple_New(static_cast<Py_ssize_t>(positional)));
  Object inputs(PyTuple_New(static_cast<Py_ssize_t>(positional)));
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < positional; ++i) {
    PyObject* o = slots[i];
    const auto at = static_cast<Py_ssize_t>(i);
    PyTuple_SET_ITEM(needs.get(), at,
                     node->add_argument(o, arguments_[i].is_list, tensors).release());
    PyTuple_SET_ITEM(inputs.get(), at,
                     !o ? new_ref(default_object(i))
                     : arguments_[i].plain
                         ? new_ref(o)
                         : as_schema_says(name(), arguments_[i].type, o).release());
    if (o) node->set_given(i + 1);
  }
  node->set_needs_input_grad(needs.release());

  Object output;
  {
    const NoGrad no_grad;
    output = call_kernel(slots);
    if (setup_context_.get() != Py_None) {
      Object keywords;
      if (n > positional) keywords = Object(PyDict_New());
      for (size_t i = positional; i < n; ++i) {
        PyObject* o = slots[i] ? slots[i] : default_object(i);
        checked(PyDict_SetItemString(keywords.get(), params_[i].name, o));
      }
      set_up(setup_context_.get(), ctx.get(), inputs.get(), keywords.get(), output.get());
    }
  }

  std::vector<Tensor> results;
  const auto add_result = [&](PyObject* o) {
    const bool list = PyList_Check(o) || PyTuple_Check(o);
    node->add_result(list ? static_cast<int>(PySequence_Fast_GET_SIZE(o)) : FormulaNode::kSingle);
    if (!list) {
      results.push_back(is_tensor(o) ? unwrap(o) : Tensor());
      return;
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(o, i);
      results.push_back(is_tensor(item) ? unwrap(item) : Tensor());
    }
  };
  const size_t m = schema_.returns.size();
  if (m == 1) add_result(output.get());
  for (size_t i = 0; m > 1 && i < m; ++i)
    add_result(PySequence_Fast_GET_ITEM(output.get(), static_cast<Py_ssize_t>(i)));
  const std::vector<Tensor> finished = autograd::finish_function(node.get(), tensors, results);

  // Usually the results are those of the kernel, which now have a history.
  bool same = true;
  for (size_t i = 0; i < results.size(); ++i) {
    same &= finished[i].is_same(results[i]);
    if (finished[i].defined()) track(Object(wrap(finished[i])).get());
  }
  if (same) return output;
  size_t at = 0;
  const auto replaced = [&](PyObject* o) {
    if (!PyList_Check(o) && !PyTuple_Check(o)) {
      const Tensor& t = finished[at++];
      return t.defined() ? Object(wrap(t)) : Object::borrow(o);
    }
    Object list(PySequence_List(o));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
      const Tensor& t = finished[at++];
      if (t.defined()) checked(PyList_SetItem(list.get(), i, wrap(t)));
    }
    return list;
  };
  if (m == 1) return replaced(output.get());
  Object all(PyTuple_New(static_cast<Py_ssize_t>(m)));
  for (size_t i = 0; i < m; ++i) {
    const auto k = static_cast<Py_ssize_t>(i);
    PyTuple_SET_ITEM(all.get(), k, replaced(PySequence_Fast_GET_ITEM(output.get(), k)).release());
  }
  return all;
}

namespace {

template <class F>
void each_tensor(const Stack& stack, F&& f) {
  for (const Value& v : stack) {
    if (v.is<Tensor>()) f(v.as<Tensor>());
    if (v.is<Value::Tensors>()) {
      for (const Tensor& t : v.as<Value::Tensors>()) {
        if (t.defined()) f(t);
      }
    }
  }
}

bool is_recorded(const Stack& stack) {
  bool records = false;
  each_tensor(stack, [&](const Tensor& t) { records |= t.requires_grad(); });
  return records && grad_enabled() && !inference_enabled();
}

void warn_of(const std::string& name) {
  in_python([&] {
    const std::string text = str(
        name,
        ": expected a derivative for backward to go through, got an operator without one; "
        "gradients may be missing or wrong. Give it one with treadle.library.register_autograd, "
        "or register treadle.library.fallthrough_kernel for 'Autograd' where it has none");
    checked(PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1));
  });
}

class UnknownDerivative final : public autograd::Node {
 public:
  explicit UnknownDerivative(std::string op) : op_(std::move(op)) {}
  std::string name() const override { return "WarnNotImplemented"; }
  Grads apply(Grads&&) override {
    warn_of(op_);
    return Grads(num_outputs());
  }

 private:
  std::string op_;
};

// Runs on Layer::Autograd for an operator without a statement about derivatives. The calls of its
// kernel are recorded as usual, and backward warns when it reaches a result.
void call_without_derivative(const Operator& op, Stack& stack) {
  const DynamicOperator& self = *DynamicOperator::of(op);
  if (!is_recorded(stack)) {
    self.call_kernel(stack);
    return;
  }
  const std::string name = op.info().base_name;
  auto node = make_intrusive<UnknownDerivative>(name);
  each_tensor(stack, [&](const Tensor& t) { autograd::add_edges(*node, t); });
  self.call_kernel(stack);
  size_t i = 0;
  for (const Value& v : stack) {
    const bool written = self.schema().returns[i++].type.writes();
    each_tensor({v}, [&](const Tensor& t) {
      if (!autograd::is_differentiable(t.dtype())) return;
      if (t.requires_grad()) {
        autograd::add_hook(t, [name](const Tensor&) {
          warn_of(name);
          return Tensor();
        });
      } else if (!written) {
        autograd::set_history(t, node);
      }
    });
  }
}

const bool default_set = [] {
  DynamicOperator::set_default_autograd(&call_without_derivative);
  return true;
}();

}  // namespace

void LibraryOperator::run_formula(void* context, const Operator&, Stack& stack) {
  auto& self = *static_cast<LibraryOperator*>(context);
  if (!is_recorded(stack)) {
    self.dynamic_->call_kernel(stack);
    return;
  }
  in_python(
      [&] { self.with_objects(stack, [&](Slots slots) { return self.differentiate(slots); }); });
}

}  // namespace treadle::python
