// For C++ extensions: functions of tensors as functions of a Python module.
//
//   #include <treadle/extension.h>
//
//   treadle::Tensor twice_plus(treadle::Tensor x, double y) {
//     return treadle::aten::add(treadle::aten::mul(x, 2.0), y);
//   }
//   TREADLE_MODULE(TREADLE_EXTENSION_NAME, m) { m.def("twice_plus", &twice_plus, "2 x + y."); }
//
// Arguments and results may be Tensor (undefined is None), bool, integers, floating numbers,
// Scalar, ScalarType, Device, std::string, and std::optional, std::vector and std::tuple (a result
// only) of those. Arguments are given by position. One that does not fit is a TypeError that names
// the function and the argument; a C++ exception becomes the Python one of its kind.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "aten/functions.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/library/extension_module.h"
#include "treadle/stamp.h"

namespace treadle::extension {

using python::Object;

// Where a value comes from, for messages.
struct Place {
  const char* function;
  size_t argument;  // from 0
};

[[noreturn]] inline void wrong_type(const Place& place, const char* expected, PyObject* got) {
  fail<ErrorKind::Type>(OpName(place.function), "expected argument ", place.argument + 1, " to be ",
                        expected, ", got ", python::type_text(got));
}

// ---- arguments

template <class T, class = void>
struct FromPython;

template <>
struct FromPython<Tensor> {
  static Tensor from(const Place& place, PyObject* o) {
    if (o == Py_None) return {};
    if (!python::is_tensor(o)) wrong_type(place, "a Tensor", o);
    return python::unwrap(o);
  }
};
template <>
struct FromPython<bool> {
  static bool from(const Place& place, PyObject* o) {
    if (!python::is_bool(o)) wrong_type(place, "a bool", o);
    return python::to_boolean(o);
  }
};
template <class T>
struct FromPython<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static T from(const Place& place, PyObject* o) {
    if (!python::is_int(o)) wrong_type(place, "an int", o);
    const int64_t value = python::to_int(place.function, o);
    check<ErrorKind::Value>(std::in_range<T>(value), OpName(place.function), "expected argument ",
                            place.argument + 1, " to fit its C++ type, got ", value);
    return static_cast<T>(value);
  }
};
template <class T>
struct FromPython<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static T from(const Place& place, PyObject* o) {
    if (!python::is_real(o)) wrong_type(place, "a float", o);
    return static_cast<T>(python::to_double(place.function, o));
  }
};
template <>
struct FromPython<Scalar> {
  static Scalar from(const Place& place, PyObject* o) {
    if (!python::is_number(o)) wrong_type(place, "a number", o);
    return python::to_scalar(place.function, o);
  }
};
template <>
struct FromPython<ScalarType> {
  static ScalarType from(const Place& place, PyObject* o) {
    const auto dtype = python::as_dtype(o);
    if (!dtype) wrong_type(place, "a dtype", o);
    return *dtype;
  }
};
template <>
struct FromPython<Device> {
  static Device from(const Place& place, PyObject* o) {
    if (!python::is_device(o)) wrong_type(place, "a device", o);
    return python::to_device(o);
  }
};
template <>
struct FromPython<std::string> {
  static std::string from(const Place& place, PyObject* o) {
    if (!PyUnicode_Check(o)) wrong_type(place, "a str", o);
    return std::string(python::utf8(o));
  }
};
template <class T>
struct FromPython<std::optional<T>> {
  static std::optional<T> from(const Place& place, PyObject* o) {
    if (o == Py_None) return std::nullopt;
    return FromPython<T>::from(place, o);
  }
};
template <class T>
struct FromPython<std::vector<T>> {
  static std::vector<T> from(const Place& place, PyObject* o) {
    if (!PyList_Check(o) && !PyTuple_Check(o)) wrong_type(place, "a list or tuple", o);
    std::vector<T> values;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      values.push_back(FromPython<T>::from(place, PySequence_Fast_GET_ITEM(o, i)));
    return values;
  }
};

// ---- results

inline PyObject* to_python(const Tensor& t) { return python::wrap(Tensor(t)); }
inline PyObject* to_python(bool v) { return python::to_bool(v); }
inline PyObject* to_python(const Scalar& v) { return python::wrap(v); }
inline PyObject* to_python(ScalarType v) { return python::wrap(v); }
inline PyObject* to_python(Device v) { return python::wrap(v); }
inline PyObject* to_python(const std::string& v) { return python::unicode(v).release(); }
template <class T>
std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, PyObject*> to_python(T v) {
  return python::wrap(static_cast<int64_t>(v));
}
template <class T>
std::enable_if_t<std::is_floating_point_v<T>, PyObject*> to_python(T v) {
  return python::wrap(static_cast<double>(v));
}
template <class T>
PyObject* to_python(const std::vector<T>& values);
template <class... Ts>
PyObject* to_python(const std::tuple<Ts...>& values);
template <class T>
PyObject* to_python(const std::optional<T>& v) {
  return v ? to_python(*v) : python::none();
}
template <class T>
PyObject* to_python(const std::vector<T>& values) {
  Object list(PyList_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), to_python(T(values[i])));
  return list.release();
}
template <class... Ts>
PyObject* to_python(const std::tuple<Ts...>& values) {
  Object tuple(PyTuple_New(sizeof...(Ts)));
  Py_ssize_t i = 0;
  std::apply([&](const auto&... v) { (PyTuple_SET_ITEM(tuple.get(), i++, to_python(v)), ...); },
             values);
  return tuple.release();
}

// ---- the module

// A function as Python calls it: it lives for as long as the program.
struct Callable {
  std::string name;
  std::string doc;
  std::function<PyObject*(PyObject* const* arguments)> call;
  Py_ssize_t count;
  PyMethodDef definition{};

  static PyObject* run(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
    return python::guarded([&] {
      const auto* f = static_cast<const Callable*>(PyCapsule_GetPointer(self, nullptr));
      check<ErrorKind::Type>(count == f->count, OpName(f->name), "expected ", f->count,
                             f->count == 1 ? " argument" : " arguments", ", got ", count);
      return f->call(arguments);
    });
  }
};

class Module {
 public:
  explicit Module(PyObject* module) : module_(module) {}

  // Adds a function. `doc` is its docstring.
  template <class R, class... Args>
  Module& def(const char* name, R (*function)(Args...), const char* doc = "") {
    auto* f = new Callable{name, doc, {}, sizeof...(Args)};
    f->call = [f, function](PyObject* const* arguments) {
      return [&]<size_t... I>(std::index_sequence<I...>)->PyObject* {
        const char* const name = f->name.c_str();
        std::tuple<std::decay_t<Args>...> values{
            FromPython<std::decay_t<Args>>::from(Place{name, I}, arguments[I])...};
        if constexpr (std::is_void_v<R>) {
          function(std::get<I>(values)...);
          return python::none();
        } else {
          return to_python(function(std::get<I>(values)...));
        }
      }
      (std::index_sequence_for<Args...>());
    };
    f->definition = {f->name.c_str(), reinterpret_cast<PyCFunction>(python::slot(&Callable::run)),
                     METH_FASTCALL, f->doc.c_str()};
    const Object capsule(PyCapsule_New(f, nullptr, nullptr));
    const Object module_name(PyModule_GetNameObject(module_));
    const Object made(PyCFunction_NewEx(&f->definition, capsule.get(), module_name.get()));
    python::checked(PyModule_AddObjectRef(module_, name, made.get()));
    return *this;
  }
  PyObject* object() const { return module_; }

 private:
  PyObject* module_;
};

// The module `name`, filled by `fill`.
inline PyObject* make_module(const char* name, void (*fill)(Module&)) {
  return python::guarded([&] {
    Object module(python::init_operator_library(name, nullptr, nullptr, 0));
    Module m(module.get());
    fill(m);
    return module.release();
  });
}

}  // namespace treadle::extension

#define TREADLE_STRING_(x) #x
#define TREADLE_STRING(x) TREADLE_STRING_(x)
#define TREADLE_JOIN_(a, b) a##b
#define TREADLE_JOIN(a, b) TREADLE_JOIN_(a, b)

// Defines the module: TREADLE_MODULE(NAME, m) { m.def(...); }. The name is that of the file, which
// treadle.utils.cpp_extension gives as TREADLE_EXTENSION_NAME.
#define TREADLE_MODULE(name, variable)                                                    \
  static void treadle_fill_module(::treadle::extension::Module&);                         \
  TREADLE_LIBRARY_STAMP                                                                   \
  PyMODINIT_FUNC TREADLE_JOIN(PyInit_, name)() {                                          \
    return ::treadle::extension::make_module(TREADLE_STRING(name), &treadle_fill_module); \
  }                                                                                       \
  static void treadle_fill_module(::treadle::extension::Module& variable)
