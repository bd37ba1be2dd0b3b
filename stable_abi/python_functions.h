// The functions of Python that the library of the ABI has: those that the extension module gives
// to it, so that it needs no Python itself.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/device.h"
#include "core/base/scalar_type.h"
#include "core/tensor/tensor.h"

namespace treadle::stable_abi {

// Objects are PyObject*. The caller holds the interpreter lock, unless it says otherwise. All
// throw Error.
struct PythonFunctions {
  bool (*is_tensor)(void* object);
  Tensor (*to_tensor)(void* object);
  void* (*from_tensor)(const Tensor& tensor, void* type);
  ScalarType (*to_dtype)(void* object);
  void* (*from_dtype)(ScalarType dtype);
  Device (*to_device)(void* object);
  void* (*from_device)(Device device);
  // Without the lock.
  void (*warn)(std::string_view text, const char* file, uint32_t line) noexcept;
  // Defines an operator that is written in Python; whether there is one of the name. Without the
  // lock.
  bool (*define_operator)(const char* name);
};

const PythonFunctions* python_functions() noexcept;  // null: Python is not there
const PythonFunctions& require_python();             // RuntimeError: it is not there

}  // namespace treadle::stable_abi

// Called once, before the first extension is loaded.
extern "C" __attribute__((visibility("default"))) void treadle_stable_abi_set_python(
    const treadle::stable_abi::PythonFunctions* functions);
