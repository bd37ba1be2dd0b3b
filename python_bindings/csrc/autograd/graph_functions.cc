// The functions behind treadle.autograd.graph: hooks on saved tensors, edges of the graph,
// versions, and the traversal from edges to edges.
//
// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <unordered_set>

#include "autograd/graph/engine.h"
#include "autograd/saved_tensor.h"
#include "python_bindings/csrc/autograd/node_object.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/module.h"
#include "python_bindings/csrc/tensors/methods.h"

namespace treadle::python {
namespace {

using autograd::Edge;
using autograd::NodePtr;

// ---- saved tensors ----

class PythonSavedHooks final : public autograd::SavedTensorHooks {
 public:
  PythonSavedHooks(PyObject* pack, PyObject* unpack) : pack_(pack), unpack_(unpack) {}

  std::shared_ptr<void> pack(const Tensor& t) override {
    return in_python([&] {
      Object argument(wrap(t));
      return std::make_shared<HeldFunction>(
          Object(call_python(PyObject_CallOneArg, pack_.get(), argument.get())).get());
    });
  }
  Tensor unpack(const std::shared_ptr<void>& packed) override {
    return in_python([&] {
      Object result(call_python(PyObject_CallOneArg, unpack_.get(),
                                static_cast<HeldFunction*>(packed.get())->get()));
      check<ErrorKind::Type>(is_tensor(result.get()),
                             "a unpack hook of saved tensors expected to return a Tensor, got ",
                             type_text(result.get()));
      return unwrap(result.get());
    });
  }

 private:
  HeldFunction pack_, unpack_;
};

// _push_saved_tensors_hooks(pack, unpack)
PyObject* push_saved_hooks(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_internal(count == 2, "_push_saved_tensors_hooks takes two functions");
    for (Py_ssize_t i = 0; i < 2; ++i) {
      check<ErrorKind::Type>(PyCallable_Check(arguments[i]), OpName("saved_tensors_hooks"),
                             "expected two functions, got ", type_text(arguments[i]));
    }
    autograd::SavedTensorHooksScope::push(
        std::make_shared<PythonSavedHooks>(arguments[0], arguments[1]));
    return none();
  });
}
PyObject* pop_saved_hooks(PyObject*, PyObject*) {
  return guarded([&] {
    check<ErrorKind::Runtime>(!autograd::saved_tensor_hooks().empty(),
                              OpName("saved_tensors_hooks"), "expected hooks in force, got none");
    autograd::SavedTensorHooksScope::pop();
    return none();
  });
}
// _disable_saved_tensors_hooks(message or None): returns the previous setting.
PyObject* disable_saved_hooks(PyObject*, PyObject* message) {
  return guarded([&] {
    std::optional<std::string> why;
    if (message != Py_None) {
      check<ErrorKind::Type>(PyUnicode_Check(message), OpName("disable_saved_tensors_hooks"),
                             "expected a str, got ", type_text(message));
      why = std::string(utf8(message));
      check<ErrorKind::Runtime>(autograd::saved_tensor_hooks().empty(), *why);
    }
    std::optional<std::string>& current = autograd::saved_tensor_hooks_disabled();
    std::swap(current, why);
    return why ? unicode(*why).release() : none();
  });
}

// ---- versions ----

PyObject* increment_version(PyObject*, PyObject* tensor) {
  return guarded([&] {
    check<ErrorKind::Type>(is_tensor(tensor), OpName("increment_version"),
                           "expected a tensor, got ", type_text(tensor));
    unwrap(tensor).impl()->bump_version();
    return none();
  });
}

// ---- edges ----

PyObject* wrap_edge(const Edge& edge) {
  Object node(wrap_node(edge.node));
  return Object(Py_BuildValue("(OI)", node.get(), edge.input_nr)).release();
}

// The destination of a tensor's gradient: (node, number).
PyObject* gradient_edge(PyObject*, PyObject* tensor) {
  return guarded([&] {
    check<ErrorKind::Type>(is_tensor(tensor), OpName("get_gradient_edge"),
                           "expected a tensor, got ", type_text(tensor));
    const Edge edge = autograd::gradient_edge(unwrap(tensor));
    check<ErrorKind::Runtime>(edge.valid(), OpName("get_gradient_edge"),
                              "expected a tensor that requires gradients, got one that "
                              "does not");
    return wrap_edge(edge);
  });
}

// A tuple of (node, number).
std::vector<Edge> read_edges(const char* op, PyObject* tuple) {
  std::vector<Edge> edges;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* pair = PyTuple_GET_ITEM(tuple, i);
    check<ErrorKind::Type>(PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) >= 2, OpName(op),
                           "expected an edge of the graph, got ", type_text(pair));
    const NodePtr& node = unwrap_node(op, PyTuple_GET_ITEM(pair, 0));
    const int64_t number = to_int(op, PyTuple_GET_ITEM(pair, 1));
    check<ErrorKind::Index>(number >= 0 && number < static_cast<int64_t>(node->num_inputs()),
                            OpName(op), "expected an output of ", node->name(), " in [0, ",
                            node->num_inputs(), "), got ", number);
    edges.push_back({node, static_cast<uint32_t>(number)});
  }
  return edges;
}

// _backward_edges(op, roots, gradients, captures, keep_graph, create_graph, accumulate): gradients
// of the captured edges, None where nothing came.
PyObject* backward_edges(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_internal(count == 7, "_backward_edges takes seven arguments");
    const std::string name(utf8(arguments[0]));
    const char* op = name.c_str();
    const std::vector<Edge> roots = read_edges(op, arguments[1]);
    const std::vector<Edge> captures = read_edges(op, arguments[3]);
    autograd::Grads gradients;
    for (size_t i = 0; i < roots.size(); ++i) {
      PyObject* given = PyTuple_GET_ITEM(arguments[2], static_cast<Py_ssize_t>(i));
      check<ErrorKind::Type>(given == Py_None || is_tensor(given), OpName(op),
                             "expected gradients to be tensors or None, got ", type_text(given));
      const autograd::InputMetadata& root = roots[i].node->input(roots[i].input_nr);
      if (given == Py_None) {
        const IntList sizes = root.sizes;
        check<ErrorKind::Runtime>(
            std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n == 1; }), OpName(op),
            "grad can be implicitly created only for scalar outputs, got shape ", sizes);
        check<ErrorKind::Runtime>(
            !is_complex(root.dtype), OpName(op),
            "grad can be implicitly created only for real scalar outputs, got ", root.dtype);
        Tensor one = empty_tensor(root.sizes, root.dtype, root.device);
        Object object(wrap(one));
        Object filled(call_operator("fill_", object.get(), {Object(PyLong_FromLong(1)).get()}));
        gradients.push_back(std::move(one));
      } else {
        const Tensor& gradient = unwrap(given);
        check<ErrorKind::Runtime>(gradient.sizes() == IntList(root.sizes), OpName(op),
                                  "expected a gradient of shape ", IntList(root.sizes),
                                  " for output ", i, ", got ", gradient.sizes());
        check<ErrorKind::Runtime>(is_complex(gradient.dtype()) == is_complex(root.dtype),
                                  OpName(op), "expected a gradient of dtype ", root.dtype,
                                  " for output ", i, ", got ", gradient.dtype());
        check<ErrorKind::Runtime>(gradient.device() == root.device, OpName(op),
                                  "expected a gradient on device ", root.device, " for output ", i,
                                  ", got ", gradient.device());
        gradients.push_back(gradient);
      }
    }
    const autograd::WalkOptions options{.keep_graph = to_boolean(arguments[4]),
                                        .create_graph = to_boolean(arguments[5]),
                                        .accumulate = to_boolean(arguments[6])};
    std::vector<Tensor> found;
    {
      const ReleaseGil released;
      found = autograd::run_backward(roots, std::move(gradients), captures, options);
    }
    return wrap(found);
  });
}

// _reaches_other_leaves(tensors, own): whether the history of a tensor leads to a leaf that is not
// among `own`.
PyObject* reaches_other_leaves(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_internal(count == 2, "_reaches_other_leaves takes two tuples");
    const std::vector<Tensor> tensors = detail::read_tensors("func", arguments[0]);
    const std::vector<Tensor> own = detail::read_tensors("func", arguments[1]);
    // Held, because the node of a leaf is freed with the last edge to it.
    std::unordered_set<const autograd::Node*> seen;
    std::vector<NodePtr> held, waiting;
    const auto visit = [&](const Edge& edge) {
      if (edge.valid() && seen.insert(edge.node.get()).second) waiting.push_back(edge.node);
    };
    for (const Tensor& t : own) {
      if (!t.requires_grad() || !autograd::is_leaf(t)) continue;
      held.push_back(autograd::gradient_edge(t).node);
      seen.insert(held.back().get());
    }
    for (const Tensor& t : tensors) visit(autograd::gradient_edge(t));
    while (!waiting.empty()) {
      held.push_back(std::move(waiting.back()));
      waiting.pop_back();
      const autograd::Node* node = held.back().get();
      if (node->sequence_nr() == autograd::kFirstInQueue) return to_bool(true);
      for (const Edge& edge : node->edges()) visit(edge);
    }
    return to_bool(false);
  });
}

PyObject* current_backward(PyObject*, PyObject*) {
  return PyLong_FromLongLong(autograd::current_backward());
}
PyObject* is_whole_backward(PyObject*, PyObject*) {
  return to_bool(autograd::reaches_all_leaves());
}

// The address of the node that a tensor's gradient goes to, for _will_run(), which does not need it
// alive.
PyObject* node_key(PyObject*, PyObject* tensor) {
  return guarded([&] {
    check_internal(is_tensor(tensor), "_node_key takes a tensor");
    const NodePtr node = autograd::gradient_edge(unwrap(tensor)).node;
    check_internal(static_cast<bool>(node), "_node_key takes a tensor that requires grad");
    return Object(Py_BuildValue("(NK)", PyLong_FromVoidPtr(node.get()), node->sequence_nr()))
        .release();
  });
}
PyObject* will_run(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_internal(count == 2, "_will_run takes an address and a number");
    return to_bool(
        autograd::will_run(static_cast<const autograd::Node*>(PyLong_AsVoidPtr(arguments[0])),
                           PyLong_AsUnsignedLongLong(arguments[1])));
  });
}

PyMethodDef fast(const char* name, PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return {name, reinterpret_cast<PyCFunction>(slot(function)), METH_FASTCALL, nullptr};
}

}  // namespace

void init_graph_functions(PyObject* module) {
  static PyMethodDef functions[] = {
      fast("_push_saved_tensors_hooks", &push_saved_hooks),
      {"_pop_saved_tensors_hooks", pop_saved_hooks, METH_NOARGS, nullptr},
      {"_disable_saved_tensors_hooks", disable_saved_hooks, METH_O, nullptr},
      {"_increment_version", increment_version, METH_O, nullptr},
      {"_gradient_edge", gradient_edge, METH_O, nullptr},
      fast("_backward_edges", &backward_edges),
      fast("_reaches_other_leaves", &reaches_other_leaves),
      {"_current_backward", current_backward, METH_NOARGS, nullptr},
      {"_is_whole_backward", is_whole_backward, METH_NOARGS, nullptr},
      {"_node_key", node_key, METH_O, nullptr},
      fast("_will_run", &will_run),
      {},
  };
  checked(PyModule_AddFunctions(module, functions));
}

}  // namespace treadle::python
