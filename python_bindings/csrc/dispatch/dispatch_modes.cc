// The modes over operators that are open on a thread, and the functions by which a program reads
// and changes them.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/dispatch/dispatch_modes.h"

#include <pybind11/pybind11.h>

#include "core/threads/quiescence.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/module.h"

namespace py = pybind11;

namespace treadle::python {
namespace {

constinit Kept kept_name;
// The function whose presence in a class says that it takes over no operators.
PyObject* disabled = nullptr;

PyObject* push_mode(PyObject*, PyObject* mode) {
  return guarded([&] {
    check<ErrorKind::Type>(PyObject_HasAttrString(mode, "__torch_dispatch__") != 0,
                           OpName("_push_on_torch_dispatch_stack"),
                           "expected an object with __torch_dispatch__, got ", type_text(mode));
    add_dispatch_layer();
    dispatch_modes().push_back(new_ref(mode));
    include_dispatch();
    return none();
  });
}

// _pop_torch_dispatch_stack(mode_key=None)
PyObject* pop_mode(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check<ErrorKind::NotImplemented>(count == 0 || (count == 1 && arguments[0] == Py_None),
                                     OpName("_pop_torch_dispatch_stack"),
                                     "expected mode_key = None, as there are no modes with a place "
                                     "of their own, got ",
                                     count ? type_text(arguments[0]) : "");
    check<ErrorKind::Runtime>(!dispatch_modes().empty(), OpName("_pop_torch_dispatch_stack"),
                              "expected an open mode, got none");
    PyObject* mode = dispatch_modes().back();
    dispatch_modes().pop_back();
    include_dispatch();
    return mode;
  });
}

PyObject* count_modes(PyObject*, PyObject*) {
  return guarded([&] { return PyLong_FromSize_t(dispatch_modes().size()); });
}

PyObject* mode_at(PyObject*, PyObject* index) {
  return guarded([&] {
    const int64_t i = to_int("_get_dispatch_stack_at", index);
    const auto n = static_cast<int64_t>(dispatch_modes().size());
    check<ErrorKind::Index>(i >= 0 && i < n, OpName("_get_dispatch_stack_at"),
                            "expected 0 <= index < ", n, ", got ", i);
    return new_ref(dispatch_modes()[static_cast<size_t>(i)]);
  });
}

// Tensor.__torch_dispatch__(func, types, args=(), kwargs=None): the call itself, below the layer.
PyObject* call_below(PyObject*, PyObject* positional, PyObject* named) {
  return guarded([&] {
    static const char* const names[] = {"func", "types", "args", "kwargs", nullptr};
    PyObject *func, *types, *args = nullptr, *kwargs = nullptr;
    if (!PyArg_ParseTupleAndKeywords(positional, named, "OO|OO:__torch_dispatch__",
                                     const_cast<char**>(names), &func, &types, &args, &kwargs))
      throw PythonError{};
    const Object all(args && args != Py_None ? PySequence_Tuple(args) : PyTuple_New(0));
    const BelowLayers below(layers_down_to(Layer::Dispatch));
    return Object(call_python(PyObject_Call, func, all.get(), kwargs == Py_None ? nullptr : kwargs))
        .release();
  });
}

// _call_parts(func, args, kwargs): calls a composite operator so that handlers get the operators
// that it consists of. Other operators are called as usual.
PyObject* call_parts(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_internal(count == 3 && PyTuple_Check(arguments[1]) && PyDict_Check(arguments[2]),
                   "_call_parts takes an operator, a tuple and a dict");
    struct Wanted {
      Wanted() { wants_parts() = true; }
      ~Wanted() { wants_parts() = false; }
    } const wanted;
    return Object(call_python(PyObject_Call, arguments[0], arguments[1], arguments[2])).release();
  });
}

// _is_wrapper(tensor): whether its class takes over its operators and it has no memory of its own.
PyObject* is_wrapper(PyObject*, PyObject* tensor) {
  return guarded([&] {
    if (!is_tensor(tensor)) return to_bool(false);
    const Tensor& t = unwrap(tensor);
    return to_bool((t.layers() & layer_bit(Layer::Dispatch)) &&
                   (t.is_meta() || !t.storage()->has_memory()));
  });
}

// _share_storage(tensor, other): replaces a wrapper's storage, and so its version count, by that of
// another wrapper.
PyObject* share_storage(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_internal(count == 2 && is_tensor(arguments[0]) && is_tensor(arguments[1]),
                   "_share_storage takes two tensors");
    const Tensor &t = unwrap(arguments[0]), &other = unwrap(arguments[1]);
    check<ErrorKind::Runtime>(t.device() == other.device(),
                              "expected a view on the device of what it is a view of, ",
                              other.device(), ", got one on ", t.device());
    const Quiescence quiet("_share_storage");
    // Refuses a storage that the tensor would reach beyond.
    if (other.storage()->has_memory())
      static_cast<void>(alias_as(other, t.dtype(), t.sizes(), t.strides(), t.storage_offset()));
    if (t.is_strided() && other.is_strided()) t.impl()->set_storage(other.storage(), t.dtype());
    t.impl()->share_version_of(*other.impl());
    return none();
  });
}

// A block in which neither modes nor classes take over operators. It begins when the object is
// made, because some programs keep the object instead of using `with`.
class DispatchOff {
 public:
  DispatchOff() : was_off_(layer_state().excluded & layer_bit(Layer::Dispatch)) {
    layer_state().excluded |= layer_bit(Layer::Dispatch);
  }
  ~DispatchOff() { end(); }
  DispatchOff(const DispatchOff&) = delete;
  DispatchOff& operator=(const DispatchOff&) = delete;

  void end() {
    if (!was_off_) layer_state().excluded &= static_cast<LayerMask>(~layer_bit(Layer::Dispatch));
    was_off_ = true;
  }

 private:
  bool was_off_;
};

}  // namespace

std::vector<PyObject*>& dispatch_modes() {
  thread_local std::vector<PyObject*> list;
  return list;
}

bool& wants_parts() {
  thread_local bool wanted = false;
  return wanted;
}

void include_dispatch() {
  LayerMask& included = layer_state().included;
  const LayerMask bit = layer_bit(Layer::Dispatch);
  included = static_cast<LayerMask>(dispatch_modes().empty() ? included & ~bit : included | bit);
}

bool class_dispatches(PyTypeObject* type) {
  PyObject* const name =
      kept_name.get([] { return Object(PyUnicode_InternFromString("__torch_dispatch__")); });
  PyObject* const found = _PyType_Lookup(type, name);
  return found && found != disabled;
}

void init_dispatch_modes(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_disabled_torch_dispatch_impl", reinterpret_cast<PyCFunction>(slot(&call_below)),
       METH_VARARGS | METH_KEYWORDS,
       "What __torch_dispatch__ of a class is set to that takes over no operators: calls "
       "func(*args, **kwargs) below those that do."},
      {"_push_on_torch_dispatch_stack", push_mode, METH_O, "Opens a mode over operators."},
      {"_pop_torch_dispatch_stack", reinterpret_cast<PyCFunction>(slot(&pop_mode)), METH_FASTCALL,
       "Closes the innermost mode over operators, and returns it."},
      {"_len_torch_dispatch_stack", count_modes, METH_NOARGS, "How many modes are open."},
      {"_get_dispatch_stack_at", mode_at, METH_O, "An open mode, the outermost first."},
      {"_call_parts", reinterpret_cast<PyCFunction>(slot(&call_parts)), METH_FASTCALL,
       "Calls a composite operator so that handlers get the operators that it consists of."},
      {"_is_wrapper", is_wrapper, METH_O, nullptr},
      {"_share_storage", reinterpret_cast<PyCFunction>(slot(&share_storage)), METH_FASTCALL,
       nullptr},
      {},
  };
  checked(PyModule_AddFunctions(module, functions));
  disabled = attribute(module, "_disabled_torch_dispatch_impl").release();
  checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), "__torch_dispatch__",
                                 disabled));
  py::class_<DispatchOff>(
      py::reinterpret_borrow<py::module_>(module), "_DisableTorchDispatch",
      "A block in which neither modes nor classes of tensors take over operators.")
      .def(py::init<>())
      .def("__enter__", [](const DispatchOff&) {})
      .def("__exit__", [](DispatchOff& off, const py::args&) { off.end(); });
}

}  // namespace treadle::python
