// Calls that __torch_function__ takes over: the function that it receives, and the arguments in the
// program's form.
//
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "python_bindings/csrc/arguments/arg_parser.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/dispatch/overrides.h"

namespace treadle::python::detail {
namespace {

// The program's name for the function: Tensor.add, or add of its module. Null for one that programs
// do not call by themselves.
PyObject* public_function(const Function& function, bool method) {
  if (function.object) return function.object;
  static auto* known = new std::map<std::pair<const Function*, bool>, PyObject*>();
  if (const auto entry = known->find({&function, method}); entry != known->end())
    return entry->second;
  Object found;
  if (method) {
    found = Object::maybe(
        PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), function.name));
  } else {
    found = Object::maybe(PyObject_GetAttrString(home_of(function).get(), function.name));
  }
  if (!found) PyErr_Clear();
  // Another thread may have found it meanwhile: the same one.
  return known->try_emplace({&function, method}, found.release()).first->second;
}

}  // namespace

bool take_over(const Function& function, const Arguments& arguments, PyObject** slots) {
  std::vector<PyObject*> overriding;
  const bool method = arguments.object != nullptr;
  if (method) collect_overriding(arguments.object, overriding);
  const Py_ssize_t named = arguments.names ? PyTuple_GET_SIZE(arguments.names) : 0;
  for (Py_ssize_t i = 0; i < arguments.count + named; ++i)
    collect_overriding(arguments.values[i], overriding);
  if (overriding.empty() && !any_override_mode()) return false;
  PyObject* func = public_function(function, method);
  if (!func) return false;
  Object args(PyTuple_New(arguments.count + method));
  if (method) PyTuple_SET_ITEM(args.get(), 0, new_ref(arguments.object));
  for (Py_ssize_t i = 0; i < arguments.count; ++i)
    PyTuple_SET_ITEM(args.get(), i + method, new_ref(arguments.values[i]));
  Object kwargs;
  if (named > 0) kwargs = Object(PyDict_New());
  for (Py_ssize_t k = 0; k < named; ++k) {
    checked(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(arguments.names, k),
                           arguments.values[arguments.count + k]));
  }
  slots[0] = call_override(func, overriding, args.get(), kwargs.get());
  return true;
}

}  // namespace treadle::python::detail
