// The function that the generated extension module of an outside operator library calls when Python
// imports it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iterator>

#include "python_bindings/csrc/binding.h"

// The Treadle that a library was compiled for. It is read from the library's file before loading,
// because its C++ code fits no other. TREADLE_VERSION and TREADLE_ABI are of treadle/stamp.h.
#define TREADLE_LIBRARY_STAMP                                       \
  extern "C" {                                                      \
  extern const char treadle_library_stamp[];                        \
  __attribute__((used)) const char treadle_library_stamp[] =        \
      "treadle-library-stamp:" TREADLE_VERSION ":" TREADLE_ABI ":"; \
  }

namespace treadle::python {

// The module `name` ("my_ops._C") with the functions of the shards. ImportError when operators of
// the library could not be registered: a name is taken, or a cell has two kernels.
PyObject* init_operator_library(const char* name, const char* doc,
                                const BindingShard* const* shards, size_t count);

}  // namespace treadle::python
