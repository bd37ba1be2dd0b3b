// The functions of Python objects for the library of PyTorch's stable ABI, which has no Python.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/library/stable_abi.h"

#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/autograd/node_object.h"

namespace treadle::python {
namespace {

bool is_tensor_object(void* object) { return is_tensor(static_cast<PyObject*>(object)); }
Tensor to_tensor(void* object) {
  auto* const o = static_cast<PyObject*>(object);
  check<ErrorKind::Type>(is_tensor(o), "expected a Tensor, got ", type_text(o));
  return unwrap(o);
}
void* from_tensor(const Tensor& tensor, void* type) {
  return in_python([&]() -> void* {
    auto* const wanted = static_cast<PyTypeObject*>(type);
    if (!wanted || wanted == tensor_type) return wrap(Tensor(tensor));
    check<ErrorKind::Type>(PyType_IsSubtype(wanted, tensor_type),
                           "expected a class of tensors, got ", wanted->tp_name);
    if (!tensor.impl()->python().object()) return wrap_as(wanted, Tensor(tensor));
    Object known(wrap(Tensor(tensor)));  // a tensor is one object
    check<ErrorKind::Type>(Py_IS_TYPE(known.get(), wanted), "expected a tensor of the class ",
                           wanted->tp_name, ", got one that is a ", type_text(known.get()));
    return known.release();
  });
}
ScalarType to_dtype(void* object) {
  const auto dtype = as_dtype(static_cast<PyObject*>(object));
  check<ErrorKind::Type>(dtype.has_value(), "expected a dtype, got ",
                         type_text(static_cast<PyObject*>(object)));
  return *dtype;
}
void* from_dtype(ScalarType dtype) { return wrap(dtype); }
Device to_device_value(void* object) {
  auto* const o = static_cast<PyObject*>(object);
  check<ErrorKind::Type>(is_device(o), "expected a device, got ", type_text(o));
  return to_device(o);
}
void* from_device(Device device) { return wrap(device); }

void warn(std::string_view text, const char* file, uint32_t line) noexcept {
  if (!interpreter_alive()) return;
  const AcquireGil acquired;
  const std::string whole(text);
  // A filter may make an exception of it, for which there is no caller.
  if (PyErr_WarnExplicit(PyExc_UserWarning, whole.c_str(), file, static_cast<int>(line), nullptr,
                         nullptr) < 0)
    PyErr_WriteUnraisable(nullptr);
}

bool define_operator(const char* name) {
  return in_python([&] {
    const Object define = import_attribute("treadle._library.python_operators", "define");
    const Object found(call_python(PyObject_CallFunction, define.get(), "s", name));
    return found.get() == Py_True;
  });
}

constexpr stable_abi::PythonFunctions kFunctions{&is_tensor_object, &to_tensor,  &from_tensor,
                                                 &to_dtype,         &from_dtype, &to_device_value,
                                                 &from_device,      &warn,       &define_operator};

}  // namespace

const stable_abi::PythonFunctions& stable_abi_functions() { return kFunctions; }

}  // namespace treadle::python
