// Rows of a method table for functions that take keywords.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "python_bindings/csrc/python.h"

namespace treadle::python {

using FastFunction = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

inline PyMethodDef fast_method(const char* name, FastFunction function, const char* doc,
                               int flags = 0) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)),
          METH_FASTCALL | METH_KEYWORDS | flags, doc};
}

}  // namespace treadle::python
