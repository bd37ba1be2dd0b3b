// libtorch_python.so: hands the functions of Python objects to the library of the ABI.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/exceptions.h"
#include "python_bindings/csrc/autograd/node_object.h"
#include "python_bindings/csrc/tensors/tensor_object.h"
#include "stable_abi/python_functions.h"

namespace treadle::stable_abi {
namespace {

using python::type_text;

// An exception of Python as one of C++, whose text an extension may ask for.
template <class Body>
auto translated(Body&& body) {
  return python::in_python(std::forward<Body>(body));
}

bool is_tensor(void* object) { return python::is_tensor(static_cast<PyObject*>(object)); }
Tensor to_tensor(void* object) {
  auto* const o = static_cast<PyObject*>(object);
  check<ErrorKind::Type>(python::is_tensor(o), "expected a Tensor, got ", type_text(o));
  return python::unwrap(o);
}
void* from_tensor(const Tensor& tensor, void* type) {
  return translated([&]() -> void* {
    auto* const wanted = static_cast<PyTypeObject*>(type);
    if (!wanted || wanted == python::tensor_type) return python::wrap(Tensor(tensor));
    check<ErrorKind::Type>(PyType_IsSubtype(wanted, python::tensor_type),
                           "expected a class of tensors, got ", wanted->tp_name);
    return python::wrap_as(wanted, Tensor(tensor));
  });
}
ScalarType to_dtype(void* object) {
  const auto dtype = python::as_dtype(static_cast<PyObject*>(object));
  check<ErrorKind::Type>(dtype.has_value(), "expected a dtype, got ",
                         type_text(static_cast<PyObject*>(object)));
  return *dtype;
}
void* from_dtype(ScalarType dtype) { return python::wrap(dtype); }
Device to_device(void* object) {
  auto* const o = static_cast<PyObject*>(object);
  check<ErrorKind::Type>(python::is_device(o), "expected a device, got ", type_text(o));
  return python::to_device(o);
}
void* from_device(Device device) { return python::wrap(device); }

void warn(std::string_view text, const char* file, uint32_t line) noexcept {
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  const std::string whole(text);
  // A filter may make an exception of it, for which there is no caller.
  if (PyErr_WarnExplicit(PyExc_UserWarning, whole.c_str(), file, static_cast<int>(line), nullptr,
                         nullptr) < 0)
    PyErr_WriteUnraisable(nullptr);
  PyGILState_Release(state);
}

bool define_operator(const char* name) {
  return translated([&] {
    const python::Object define = python::import_attribute("treadle._library.python_operators",
                                                           "define");
    const python::Object found(python::call_python(PyObject_CallFunction, define.get(), "s", name));
    return found.get() == Py_True;
  });
}

constexpr PythonFunctions kFunctions{&is_tensor, &to_tensor,  &from_tensor, &to_dtype,
                                     &from_dtype, &to_device, &from_device, &warn,
                                     &define_operator};

const bool handed = [] {
  treadle_stable_abi_set_python(&kFunctions);
  return true;
}();

}  // namespace
}  // namespace treadle::stable_abi
