// Common parts of the extension module: owned references, errors between the languages, the
// interpreter lock.
//
//   PyObject* method(PyObject* self, PyObject*) {
//     return guarded([&] { return Object(PyLong_FromLong(42)).release(); });
//   }
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cxxabi.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace treadle::python {

// Thrown where a Python exception is already set.
struct PythonError {};

// An owned reference. Made from a new reference. A null one means that Python has set an exception,
// which is rethrown.
class Object {
 public:
  Object() = default;
  explicit Object(PyObject* owned) : object_(owned) {
    if (!owned) throw PythonError{};
  }
  Object(Object&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Object& operator=(Object&& o) noexcept {
    Py_XSETREF(object_, std::exchange(o.object_, nullptr));
    return *this;
  }
  Object(const Object& o) : object_(o.object_) { Py_XINCREF(object_); }
  Object& operator=(const Object& o) { return *this = Object(o); }
  ~Object() { Py_XDECREF(object_); }

  static Object borrow(PyObject* object) {
    Py_XINCREF(object);
    Object r;
    r.object_ = object;
    return r;
  }
  // Takes a new reference that may be null without an exception.
  static Object maybe(PyObject* owned) {
    Object r;
    r.object_ = owned;
    return r;
  }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

inline PyObject* new_ref(PyObject* object) {
  Py_INCREF(object);
  return object;
}
inline PyObject* none() { return new_ref(Py_None); }
inline PyObject* to_bool(bool v) { return new_ref(v ? Py_True : Py_False); }
// For functions of the C API that return a negative number after setting an exception.
inline int checked(int result) {
  if (result < 0) throw PythonError{};
  return result;
}
std::string_view utf8(PyObject* unicode);
inline Object unicode(std::string_view text) {
  return Object(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}
inline Object attribute(PyObject* object, const char* name) {
  return Object(PyObject_GetAttrString(object, name));
}
// An attribute of a module, which is imported if necessary.
Object import_attribute(const char* module, const char* name);

// A Python object that is made at its first use and kept for the life of the process.
//
//   constinit Kept name;  ...  name.get([] { return Object(PyUnicode_InternFromString("x")); })
//
// It is not a static variable of a function that `make` initialises. While `make` runs, other
// threads may run Python code, and a thread that came here would wait for it while holding the
// interpreter lock, forever. Two threads may both make it here. The first one's is kept.
class Kept {
 public:
  constexpr Kept() = default;
  template <class F>
  PyObject* get(F&& make) {
    if (!object_) [[unlikely]] {
      Object made = make();
      if (!object_) object_ = made.release();
    }
    return object_;
  }

 private:
  PyObject* object_ = nullptr;
};

// Sets the Python exception for the C++ exception being handled. A failure below an operator (no
// memory, sizes that overflow) does not know the operator. `op`, where given, goes before a message
// that names none.
void set_python_exception(const char* op = nullptr) noexcept;
// The same for an error known to be one of Treadle's, without rethrowing it.
void set_python_exception(const Error& error, const char* op) noexcept;

// Runs `f`. A C++ exception becomes a Python one, which the result null or -1 indicates.
template <class F>
inline auto guarded(F&& f, const char* op = nullptr) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (const Error& error) {
    set_python_exception(error, op);
  } catch (...) {
    set_python_exception(op);
  }
  if constexpr (std::is_pointer_v<decltype(f())>)
    return nullptr;
  else
    return -1;
}

// Turns the current Python exception into a C++ one that keeps its type and traceback, for passing
// through code that knows no Python. guarded() sets it again.
[[noreturn]] void throw_python_exception();

// Adds OutOfMemoryError, DeviceLostError and InternalError to the module.
void init_exceptions(PyObject* module);

// Note [At the end of the program] The interpreter ends a thread that requests its lock after the
// program's end, by unwinding it. A destructor cannot be unwound, and C++ code above it would be
// left half way. Such a thread, a daemon inside an operator, stays where it is until the process is
// gone. Python code that C++ calls requests the lock, too, whenever it has run for a while.

// Never returns: the thread waits for the end of the process.
[[noreturn]] void stay();

// Calls a function of the C API that may run Python code: there the interpreter may end the thread.
// It stays, since without the lock no reference of the C++ code above can be dropped.
template <class Function, class... Args>
auto call_python(Function* function, Args... arguments) {
  try {
    return function(arguments...);
  } catch (const abi::__forced_unwind&) {
    stay();
  }
}

// Lets other threads run Python code while this thread runs without it.
class ReleaseGil {
 public:
  ReleaseGil();
  ~ReleaseGil();
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

  // The number of such blocks on all threads. It changes only under the interpreter lock.
  static int count();

 private:
  PyThreadState* state_;
};

// Runs `f` while other threads may run Python code.
template <class F>
auto without_gil(F&& f) {
  const ReleaseGil released;
  return f();
}

// For threads that may or may not hold the lock. See Note [At the end of the program].
class AcquireGil {
 public:
  AcquireGil() noexcept;
  ~AcquireGil() { PyGILState_Release(state_); }
  AcquireGil(const AcquireGil&) = delete;
  AcquireGil& operator=(const AcquireGil&) = delete;

 private:
  PyGILState_STATE state_;
};
// False while the interpreter shuts down, when objects can no longer be released.
bool interpreter_alive();

template <class F>
inline void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace treadle::python
