// The overrides of a call, their order, and the behaviour of Tensor's own.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/dispatch/overrides.h"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <deque>
#include <tuple>

#include "aten/ops/alias.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/module.h"

namespace py = pybind11;

namespace treadle::python {

namespace tls {
thread_local constinit OverrideState overrides __attribute__((tls_model("initial-exec")));
}

namespace {

// The modes that are open on this thread, innermost last: owned references.
std::vector<PyObject*>& modes() {
  thread_local std::vector<PyObject*> list;
  return list;
}
void count_modes() {
  tls::overrides.modes = tls::overrides.all_disabled ? 0 : static_cast<int>(modes().size());
}

constinit Kept kept_name, kept_as_they_are;

PyObject* torch_function_name() {
  return kept_name.get([] { return Object(PyUnicode_InternFromString("__torch_function__")); });
}
// The function whose presence in a class says that it has no override.
PyObject* disabled = nullptr;

// Values that never have one, recognised without a look into their type.
bool is_basic(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type ||
         type == &PyTuple_Type || type == &PyList_Type || type == &PyUnicode_Type ||
         type == &PyDict_Type || type == &PySlice_Type || type == &PyComplex_Type || o == Py_None ||
         o == Py_Ellipsis;
}

// Innermost mode taken off the stack while it handles a call.
class ModeOff {
 public:
  ModeOff() : mode_(modes().back()) {
    modes().pop_back();
    count_modes();
  }
  ~ModeOff() {
    modes().push_back(mode_);
    count_modes();
  }
  ModeOff(const ModeOff&) = delete;
  ModeOff& operator=(const ModeOff&) = delete;
  PyObject* mode() const { return mode_; }

 private:
  PyObject* mode_;
};

class SubclassesOff {
 public:
  SubclassesOff() : before_(std::exchange(tls::overrides.subclasses_disabled, true)) {}
  ~SubclassesOff() { tls::overrides.subclasses_disabled = before_; }
  SubclassesOff(const SubclassesOff&) = delete;
  SubclassesOff& operator=(const SubclassesOff&) = delete;

 private:
  bool before_;
};

// object.__torch_function__(func, types, args[, kwargs])
Object ask(PyObject* object, PyObject* func, PyObject* types, PyObject* args, PyObject* kwargs) {
  Object method(PyObject_GetAttr(object, torch_function_name()));
  PyObject* all[] = {func, types, args, kwargs};
  return Object(call_python(PyObject_Vectorcall, method.get(), all, kwargs ? 4 : 3, nullptr));
}

// "torch.add", "Tensor.add": the name of the function in errors.
std::string function_text(PyObject* func) {
  Object name = Object::maybe(PyObject_GetAttrString(func, "__qualname__"));
  if (!name) {
    PyErr_Clear();
    name = Object(PyObject_Repr(func));
  }
  return std::string(utf8(name.get()));
}

[[noreturn]] void fail_unhandled(PyObject* func, const std::vector<PyObject*>& overriding,
                                 PyObject* mode) {
  std::string tried;
  if (mode) tried += str(", the mode ", Py_TYPE(mode)->tp_name);
  for (PyObject* o : overriding) tried += str(", ", Py_TYPE(o)->tp_name);
  fail<ErrorKind::Type>("no implementation found for ", function_text(func),
                        ": expected one of the classes that implement __torch_function__ to handle "
                        "it, got NotImplemented from all of them: ",
                        tried.substr(2));
}

// Results of a class's calls are of the class: tensors, and tensors in tuples and lists.
Object convert(PyObject* result, PyTypeObject* type) {
  if (is_tensor(result)) {
    if (PyType_IsSubtype(Py_TYPE(result), type)) return Object::borrow(result);
    return Object(wrap_as(type, aten::alias(unwrap(result))));
  }
  if (!PyTuple_Check(result) && !PyList_Check(result)) return Object::borrow(result);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(result);
  Object list(PyList_New(n));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyList_SET_ITEM(list.get(), i, convert(PySequence_Fast_GET_ITEM(result, i), type).release());
  return Object(
      call_python(PyObject_CallOneArg, reinterpret_cast<PyObject*>(Py_TYPE(result)), list.get()));
}

// Attributes whose value stays of the class that it has.
bool is_kept_as_it_is(PyObject* func) {
  PyObject* const kept = kept_as_they_are.get([] {
    Object set(PySet_New(nullptr));
    for (const char* name : {"grad", "_base"}) {
      Object property = attribute(reinterpret_cast<PyObject*>(tensor_type), name);
      checked(PySet_Add(set.get(), attribute(property.get(), "__get__").get()));
    }
    return set;
  });
  const int found = PySet_Contains(kept, func);
  if (found < 0) PyErr_Clear();  // a function that has no hash
  return found > 0;
}

// func(*args, **kwargs) with the overrides of classes off; both may be None.
Object call_without_classes(PyObject* func, PyObject* args, PyObject* kwargs) {
  const Object all(args && args != Py_None ? PySequence_Tuple(args) : PyTuple_New(0));
  const SubclassesOff off;
  return Object(call_python(PyObject_Call, func, all.get(), kwargs == Py_None ? nullptr : kwargs));
}

struct OverrideArguments {
  PyObject *func, *types, *args = nullptr, *kwargs = nullptr;
  OverrideArguments(PyObject* positional, PyObject* named) {
    static const char* const names[] = {"func", "types", "args", "kwargs", nullptr};
    if (!PyArg_ParseTupleAndKeywords(positional, named, "OO|OO:__torch_function__",
                                     const_cast<char**>(names), &func, &types, &args, &kwargs))
      throw PythonError{};
  }
};

// Tensor.__torch_function__, a class method: the call itself, and its results as tensors of `cls`.
// Other classes that take part must be bases of it.
PyObject* default_override(PyObject* cls, PyObject* positional, PyObject* named) {
  return guarded([&] {
    const OverrideArguments given(positional, named);
    const Object types(PySequence_Tuple(given.types));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types.get()); ++i) {
      if (!checked(PyObject_IsSubclass(cls, PyTuple_GET_ITEM(types.get(), i))))
        return new_ref(Py_NotImplemented);
    }
    Object result = call_without_classes(given.func, given.args, given.kwargs);
    auto* type = reinterpret_cast<PyTypeObject*>(cls);
    if (type == tensor_type || is_kept_as_it_is(given.func)) return result.release();
    return convert(result.get(), type).release();
  });
}

// The function for a class that wants no overrides: the call itself.
PyObject* disabled_override(PyObject*, PyObject* positional, PyObject* named) {
  return guarded([&] {
    const OverrideArguments given(positional, named);
    return call_without_classes(given.func, given.args, given.kwargs).release();
  });
}

// ---- what treadle.overrides is made of ----

bool is_overridden(PyObject* const* objects, Py_ssize_t count) {
  return any_override_mode() ||
         std::any_of(objects, objects + count, [](PyObject* o) { return has_override(o); });
}
PyObject* has_torch_function(PyObject*, PyObject* objects) {
  return guarded([&] {
    const Object list(PySequence_Fast(objects, "has_torch_function: expected a sequence"));
    return to_bool(
        is_overridden(PySequence_Fast_ITEMS(list.get()), PySequence_Fast_GET_SIZE(list.get())));
  });
}
PyObject* has_torch_function_unary(PyObject*, PyObject* object) {
  return to_bool(is_overridden(&object, 1));
}
PyObject* has_torch_function_variadic(PyObject*, PyObject* const* objects, Py_ssize_t count) {
  return to_bool(is_overridden(objects, count));
}
// _call_torch_function(func, relevant_args, args, kwargs)
PyObject* call_torch_function(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_internal(count == 4, "_call_torch_function takes four arguments");
    const Object relevant(PySequence_Tuple(arguments[1]));
    std::vector<PyObject*> overriding;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(relevant.get()); ++i)
      collect_overriding(PyTuple_GET_ITEM(relevant.get(), i), overriding);
    return call_override(arguments[0], overriding, arguments[2], arguments[3]);
  });
}
// The objects among some whose overrides would be called, in that order.
PyObject* overloaded_args(PyObject*, PyObject* relevant) {
  return guarded([&] {
    const Object list(PySequence_Tuple(relevant));
    std::vector<PyObject*> overriding;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); ++i)
      collect_overriding(PyTuple_GET_ITEM(list.get(), i), overriding);
    Object found(PyList_New(0));
    for (PyObject* o : overriding) checked(PyList_Append(found.get(), o));
    return found.release();
  });
}

PyObject* push_mode(PyObject*, PyObject* mode) {
  modes().push_back(new_ref(mode));
  count_modes();
  return none();
}
PyObject* pop_mode(PyObject*, PyObject*) {
  return guarded([&] {
    check<ErrorKind::Runtime>(!modes().empty(), "expected an open mode, got none");
    PyObject* mode = modes().back();
    modes().pop_back();
    count_modes();
    return mode;
  });
}
PyObject* open_modes(PyObject*, PyObject*) {
  return guarded([&] {
    Object list(PyList_New(0));
    for (PyObject* mode : modes()) checked(PyList_Append(list.get(), mode));
    return list.release();
  });
}
// A block of Python in which this thread calls no overrides of classes; with `all`, nor of modes.
template <bool all>
class OverridesOff {
 public:
  void enter() {
    OverrideState& state = tls::overrides;
    before_ = {state.subclasses_disabled, state.all_disabled};
    state.subclasses_disabled = true;
    state.all_disabled |= all;
    count_modes();
  }
  void exit(const py::args&) const {
    OverrideState& state = tls::overrides;
    std::tie(state.subclasses_disabled, state.all_disabled) = before_;
    count_modes();
  }

 private:
  std::pair<bool, bool> before_;
};
template <bool all>
void add_block(const py::module_& module, const char* name, const char* doc) {
  using Block = OverridesOff<all>;
  py::class_<Block>(module, name, doc)
      .def(py::init<>())
      .def("__enter__", &Block::enter)
      .def("__exit__", &Block::exit);
}

// Tensor.as_subclass(cls): the tensor as one of the class, with the same elements and history.
PyObject* as_subclass(PyObject* self, PyObject* cls) {
  return guarded([&] {
    const bool fits =
        PyType_Check(cls) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), tensor_type);
    check<ErrorKind::Type>(PyType_Check(cls), OpName("as_subclass"), "expected a class, got ",
                           type_text(cls));
    check<ErrorKind::Runtime>(fits, OpName("as_subclass"), "expected a subclass of Tensor, got ",
                              reinterpret_cast<PyTypeObject*>(cls)->tp_name);
    return wrap_as(reinterpret_cast<PyTypeObject*>(cls), aten::alias(unwrap(self)));
  });
}

// ---- attributes ----

// The attribute before it could be overridden.
struct PlainProperty {
  const char* name;
  getter get;
  setter set;
  void* closure;
};

// Tensor.<name>.__get__ and the like
Object accessor(const char* property, const char* name) {
  return attribute(attribute(reinterpret_cast<PyObject*>(tensor_type), property).get(), name);
}
PyObject* get_overridable(PyObject* self, void* closure) {
  const auto* plain = static_cast<const PlainProperty*>(closure);
  if (!overridden(self)) [[likely]]
    return plain->get(self, plain->closure);
  return guarded([&] {
    std::vector<PyObject*> overriding;
    collect_overriding(self, overriding);
    const Object func = accessor(plain->name, "__get__"), args(PyTuple_Pack(1, self));
    return call_override(func.get(), overriding, args.get(), nullptr);
  });
}
int set_overridable(PyObject* self, PyObject* value, void* closure) {
  const auto* plain = static_cast<const PlainProperty*>(closure);
  if (!overridden(self)) [[likely]]
    return plain->set(self, value, plain->closure);
  return guarded([&] {
    std::vector<PyObject*> overriding;
    collect_overriding(self, overriding);
    const Object func = accessor(plain->name, value ? "__set__" : "__delete__");
    const Object args(value ? PyTuple_Pack(2, self, value) : PyTuple_Pack(1, self));
    const Object done(call_override(func.get(), overriding, args.get(), nullptr));
    return 0;
  });
}

}  // namespace

bool has_override(PyObject* o) {
  if (is_exact_tensor(o) || is_basic(o) || tls::overrides.subclasses_disabled ||
      tls::overrides.all_disabled || PyType_Check(o))
    return false;
  return class_overrides(Py_TYPE(o));
}

OverridingClass overriding_classes[8];

bool class_overrides_slowly(PyTypeObject* type, OverridingClass& entry) {
  // Looking an attribute up gives the class a version.
  PyObject* found = _PyType_Lookup(type, torch_function_name());
  entry = {type, type->tp_version_tag, found && found != disabled};
  return entry.overrides;
}

void collect_overriding(PyObject* o, std::vector<PyObject*>& overriding) {
  if (is_exact_tensor(o)) return;
  if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(o, i);
      if (!PyTuple_Check(item) && !PyList_Check(item)) collect_overriding(item, overriding);
    }
  }
  if (!has_override(o)) return;
  PyTypeObject* type = Py_TYPE(o);
  auto place = overriding.end();
  for (auto it = overriding.begin(); it != overriding.end(); ++it) {
    if (Py_TYPE(*it) == type) return;
    if (place == overriding.end() && PyType_IsSubtype(type, Py_TYPE(*it))) place = it;
  }
  overriding.insert(place, o);
}

PyObject* call_override(PyObject* func, const std::vector<PyObject*>& overriding, PyObject* args,
                        PyObject* kwargs) {
  // The objects stay alive in `args`. The code that runs may replace lists in it.
  std::vector<Object> held;
  for (PyObject* o : overriding) held.push_back(Object::borrow(o));
  Object types(PyTuple_New(static_cast<Py_ssize_t>(overriding.size())));
  for (size_t i = 0; i < overriding.size(); ++i) {
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     new_ref(reinterpret_cast<PyObject*>(Py_TYPE(overriding[i]))));
  }
  PyObject* tried = nullptr;
  if (any_override_mode()) {
    const ModeOff off;
    Object result = ask(off.mode(), func, types.get(), args, kwargs);
    if (result.get() != Py_NotImplemented) return result.release();
    tried = off.mode();
  }
  for (const Object& o : held) {
    Object result = ask(o.get(), func, types.get(), args, kwargs);
    if (result.get() != Py_NotImplemented) return result.release();
  }
  fail_unhandled(func, overriding, tried);
}

PyObject* call_override_of_method(PyObject* self, const char* name, PyObject* a, PyObject* b) {
  std::vector<PyObject*> overriding;
  for (PyObject* o : {self, a, b}) {
    if (o) collect_overriding(o, overriding);
  }
  const Object func = attribute(reinterpret_cast<PyObject*>(tensor_type), name);
  const Object args(b   ? PyTuple_Pack(3, self, a, b)
                    : a ? PyTuple_Pack(2, self, a)
                        : PyTuple_Pack(1, self));
  return call_override(func.get(), overriding, args.get(), nullptr);
}

void make_overridable(std::vector<PyGetSetDef>& properties) {
  static std::deque<PlainProperty> plain;  // Python keeps pointers into it
  for (PyGetSetDef& p : properties) {
    plain.push_back({p.name, p.get, p.set, p.closure});
    p = {p.name, &get_overridable, p.set ? &set_overridable : nullptr, p.doc, &plain.back()};
  }
}

void add_override_methods(std::vector<PyMethodDef>& methods) {
  methods.push_back(
      {"__torch_function__", reinterpret_cast<PyCFunction>(slot(&default_override)),
       METH_VARARGS | METH_KEYWORDS | METH_CLASS,
       "__torch_function__(func, types, args=(), kwargs=None)\n--\n\nCalls func(*args, **kwargs); "
       "results that are tensors become ones of the class."});
  methods.push_back({"as_subclass", as_subclass, METH_O,
                     "as_subclass($self, cls)\n--\n\nThe tensor as one of a subclass, over the "
                     "same elements and with the same history."});
}

void init_overrides(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_disabled_torch_function_impl", reinterpret_cast<PyCFunction>(slot(&disabled_override)),
       METH_VARARGS | METH_KEYWORDS,
       "What __torch_function__ of a class is set to whose tensors need none."},
      {"_has_torch_function", has_torch_function, METH_O, nullptr},
      {"_has_torch_function_unary", has_torch_function_unary, METH_O, nullptr},
      {"_has_torch_function_variadic",
       reinterpret_cast<PyCFunction>(slot(&has_torch_function_variadic)), METH_FASTCALL, nullptr},
      {"_call_torch_function", reinterpret_cast<PyCFunction>(slot(&call_torch_function)),
       METH_FASTCALL, nullptr},
      {"_overloaded_args", overloaded_args, METH_O, nullptr},
      {"_push_torch_function_mode", push_mode, METH_O, nullptr},
      {"_pop_torch_function_mode", pop_mode, METH_NOARGS, nullptr},
      {"_torch_function_modes", open_modes, METH_NOARGS, nullptr},
      {},
  };
  checked(PyModule_AddFunctions(module, functions));
  disabled = attribute(module, "_disabled_torch_function_impl").release();
  const auto m = py::reinterpret_borrow<py::module_>(module);
  add_block<false>(m, "DisableTorchFunctionSubclass",
                   "A block in which classes do not take over calls; modes still do.");
  add_block<true>(m, "DisableTorchFunction",
                  "A block in which neither classes nor modes take over calls.");
}

}  // namespace treadle::python
