// The conversion of C++ exceptions to Python ones, and the passage of Python exceptions through C++
// code.
//
// SPDX-License-Identifier: Apache-2.0
#include <cxxabi.h>

#include <new>
#include <string_view>

#include "python_bindings/csrc/exceptions.h"
#include "python_bindings/csrc/gil.h"
#include "python_bindings/csrc/package_name.h"

namespace treadle::python {
namespace {

PyObject* out_of_memory_type = nullptr;
PyObject* device_lost_type = nullptr;
PyObject* internal_error_type = nullptr;
PyObject* linalg_error_type = nullptr;

// A Python exception on its way through C++.
class CarriedError : public std::exception {
 public:
  CarriedError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  CarriedError(const CarriedError& o) noexcept
      : type_(o.type_), value_(o.value_), traceback_(o.traceback_) {
    AcquireGil gil;
    Py_XINCREF(type_);
    Py_XINCREF(value_);
    Py_XINCREF(traceback_);
  }
  CarriedError& operator=(const CarriedError&) = delete;
  ~CarriedError() override {
    if (!interpreter_alive()) return;
    AcquireGil gil;
    for (PyObject* part : {type_, value_, traceback_}) call_python(Py_DecRef, part);
  }
  void restore() const {
    Py_XINCREF(type_);
    Py_XINCREF(value_);
    Py_XINCREF(traceback_);
    PyErr_Restore(type_, value_, traceback_);
  }
  const char* what() const noexcept override { return "an exception in Python code"; }

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* traceback_ = nullptr;
};

PyObject* type_for(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Type:
      return PyExc_TypeError;
    case ErrorKind::Value:
      return PyExc_ValueError;
    case ErrorKind::Index:
      return PyExc_IndexError;
    case ErrorKind::Runtime:
      return PyExc_RuntimeError;
    case ErrorKind::NotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::OutOfMemory:
      return out_of_memory_type;
    case ErrorKind::DeviceLost:
      return device_lost_type;
    case ErrorKind::LinAlg:
      return linalg_error_type;
    case ErrorKind::Internal:
      return internal_error_type;
  }
  return PyExc_RuntimeError;
}

// `op`: the function that was called, where the message does not say which; else null.
void set_message(PyObject* type, const char* op, const char* message) {
  std::string text = in_words_of_the_program(message);
  if (op != nullptr) text = std::string(op) + ": " + text;
  PyErr_SetString(type, text.c_str());
}

}  // namespace

void set_python_exception(const Error& error, const char* op) noexcept {
  set_message(type_for(error.kind()), error.op().empty() ? op : nullptr, error.what());
}

void set_python_exception(const char* op) noexcept {
  try {
    throw;
  } catch (const abi::__forced_unwind&) {
    stay();  // Note [At the end of the program]
  } catch (const PythonError&) {
  } catch (const CarriedError& e) {
    e.restore();
  } catch (const Error& e) {
    set_python_exception(e, op);
  } catch (const std::bad_alloc&) {
    set_message(out_of_memory_type, op, "expected to allocate memory, the system refused");
  } catch (const std::length_error&) {  // a container larger than memory can be
    set_message(out_of_memory_type, op, "expected to allocate memory, the system refused");
  } catch (const std::exception& e) {
    PyErr_Format(internal_error_type, "internal error, please report it: %s", e.what());
  } catch (...) {
    PyErr_SetString(internal_error_type,
                    "internal error, please report it: an exception of unknown type");
  }
}

void throw_python_exception() { throw CarriedError(); }

bool restore_carried(const std::exception& error) noexcept {
  const auto* const carried = dynamic_cast<const CarriedError*>(&error);
  if (carried) carried->restore();
  return carried != nullptr;
}

std::string_view utf8(PyObject* unicode) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(unicode, &size);
  if (!data) {
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw PythonError{};
    PyErr_Clear();
    fail<ErrorKind::Value>("expected text that is valid Unicode, got a str with a lone surrogate");
  }
  return {data, static_cast<size_t>(size)};
}

Object import_attribute(const char* module, const char* name) {
  Object imported(PyImport_ImportModule(module));
  return attribute(imported.get(), name);
}

bool interpreter_alive() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() && !Py_IsFinalizing();
#else
  return Py_IsInitialized() && !_Py_IsFinalizing();
#endif
}

void init_exceptions(PyObject* module) {
  out_of_memory_type = PyErr_NewExceptionWithDoc(
      "treadle.OutOfMemoryError",
      "Raised when memory for a tensor cannot be had; nothing was changed.", PyExc_RuntimeError,
      nullptr);
  device_lost_type = PyErr_NewExceptionWithDoc(
      "treadle.DeviceLostError",
      "Raised when a device does not answer any more; what was in its memory is gone.",
      PyExc_RuntimeError, nullptr);
  internal_error_type = PyErr_NewExceptionWithDoc(
      "treadle.InternalError", "A broken invariant of Treadle itself: please report it.",
      PyExc_RuntimeError, nullptr);
  linalg_error_type = PyErr_NewExceptionWithDoc(
      "treadle.linalg.LinAlgError",
      "Raised when a matrix has no inverse, no factors of the kind asked for, or no convergence.",
      PyExc_RuntimeError, nullptr);
  checked(PyModule_AddObjectRef(module, "OutOfMemoryError", out_of_memory_type));
  checked(PyModule_AddObjectRef(module, "DeviceLostError", device_lost_type));
  checked(PyModule_AddObjectRef(module, "InternalError", internal_error_type));
  checked(PyModule_AddObjectRef(module, "_LinAlgError", linalg_error_type));
}

}  // namespace treadle::python
