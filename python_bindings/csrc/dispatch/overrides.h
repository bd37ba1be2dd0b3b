// __torch_function__: replacements of a call by subclasses of Tensor, other classes and modes.
//
//   if (overridden(self)) return call_override_of_method(self, "dim");     // in a method
//
// An exact Tensor outside of any mode costs a comparison and a read of a thread-local variable. A
// class whose `__torch_function__` is `disabled` (Parameter) counts as a class without one.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "python_bindings/csrc/tensors/tensor_object.h"

namespace treadle::python {

// The overrides that this thread has switched off, and the number of open modes.
struct OverrideState {
  int modes = 0;
  bool subclasses_disabled = false;
  bool all_disabled = false;
};
namespace tls {
extern thread_local constinit OverrideState overrides __attribute__((tls_model("initial-exec")));
}
inline bool any_override_mode() { return tls::overrides.modes > 0; }

// Whether a class has a `__torch_function__` that takes over calls. The answer is cached for the
// last few classes, by the version that the interpreter renews when a class changes.
struct OverridingClass {
  PyTypeObject* type = nullptr;
  unsigned version = 0;
  bool overrides = false;
};
extern OverridingClass overriding_classes[8];
bool class_overrides_slowly(PyTypeObject* type, OverridingClass& entry);
inline bool class_overrides(PyTypeObject* type) {
  OverridingClass& entry = overriding_classes[reinterpret_cast<uintptr_t>(type) >> 6 & 7];
  if (entry.type == type && entry.version == type->tp_version_tag && entry.version != 0 &&
      PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) [[likely]]
    return entry.overrides;
  return class_overrides_slowly(type, entry);
}

// Whether the object is a tensor of such a class, or stands for one.
bool has_override(PyObject* o);

// Whether overrides take a call of a method of `self`, a tensor.
inline bool overridden(PyObject* self) {
  if (any_override_mode()) [[unlikely]]
    return true;
  return !is_exact_tensor(self) && class_overrides(Py_TYPE(self)) &&
         !tls::overrides.subclasses_disabled && !tls::overrides.all_disabled;
}

// Calls the overrides of a call func(*args, **kwargs), those of modes first, then of the arguments'
// classes, subclasses before their bases. `kwargs` may be null. TypeError when all of them return
// NotImplemented.
PyObject* call_override(PyObject* func, const std::vector<PyObject*>& overriding, PyObject* args,
                        PyObject* kwargs);
// The same for Tensor.`name`, called on `self` with at most two arguments that may be null.
PyObject* call_override_of_method(PyObject* self, const char* name, PyObject* a = nullptr,
                                  PyObject* b = nullptr);

// Adds `o`, and its elements if it is a list, to the objects whose overrides are called.
void collect_overriding(PyObject* o, std::vector<PyObject*>& overriding);

// While it lives, this thread calls no overrides.
class NoOverrides {
 public:
  NoOverrides() : before_(tls::overrides) { tls::overrides = {0, true, true}; }
  ~NoOverrides() { tls::overrides = before_; }
  NoOverrides(const NoOverrides&) = delete;
  NoOverrides& operator=(const NoOverrides&) = delete;

 private:
  OverrideState before_;
};

// ---- methods and attributes that are not parsed as operators are ----

template <size_t N>
struct MethodName {
  char text[N];
  constexpr MethodName(const char (&t)[N]) {  // NOLINT: made of literals
    for (size_t i = 0; i < N; ++i) text[i] = t[i];
  }
};
// The result of overrides, as a method or slot returns it.
inline constexpr auto kAnyObject = [](Object result) { return result.release(); };
inline constexpr auto kTruth = [](const Object& result) {
  return checked(PyObject_IsTrue(result.get()));
};
inline constexpr auto kLength = [](const Object& result) {
  const Py_ssize_t length = PyNumber_AsSsize_t(result.get(), PyExc_OverflowError);
  if (length < 0 && PyErr_Occurred()) throw PythonError{};
  return length;
};
template <MethodName name, auto convert, class... Arguments>
[[gnu::cold, gnu::noinline]] auto call_elsewhere(PyObject* self, Arguments... arguments) {
  return guarded(
      [&] { return convert(Object(call_override_of_method(self, name.text, arguments...))); });
}

// A method of no or one argument that may be overridden.
template <MethodName name, PyCFunction f>
PyObject* overridable_method(PyObject* self, PyObject* argument) {
  if (overridden(self)) [[unlikely]]
    return call_elsewhere<name, kAnyObject>(self, argument);
  return f(self, argument);
}
template <MethodName name, PyCFunction f>
PyMethodDef without_arguments(const char* doc) {
  return {name.text, &overridable_method<name, f>, METH_NOARGS, doc};
}
template <MethodName name, PyCFunction f>
PyMethodDef with_argument(const char* doc) {
  return {name.text, &overridable_method<name, f>, METH_O, doc};
}
// The same for a slot of the type. `f` takes the tensor and objects; `convert` turns the override's
// result into the slot's.
template <MethodName name, auto f, auto convert, class... Arguments>
auto overridable_slot(PyObject* self, Arguments... arguments) {
  if (overridden(self)) [[unlikely]]
    return call_elsewhere<name, convert>(self, arguments...);
  return f(self, arguments...);
}

// Makes attributes call overrides as Tensor.shape.__get__ and __set__.
void make_overridable(std::vector<PyGetSetDef>& properties);

}  // namespace treadle::python
