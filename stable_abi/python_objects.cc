// The functions of the ABI that take or give Python objects.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "stable_abi/boundary.h"
#include "stable_abi/numbers.h"
#include "stable_abi/python_functions.h"

namespace treadle::stable_abi {
namespace {
std::atomic<const PythonFunctions*> functions{nullptr};
}

const PythonFunctions* python_functions() noexcept { return functions.load(); }
const PythonFunctions& require_python() {
  const PythonFunctions* python = python_functions();
  check<ErrorKind::Runtime>(python != nullptr,
                            "expected Python to be there, for a function of Python objects");
  return *python;
}

}  // namespace treadle::stable_abi

using namespace treadle;              // NOLINT
using namespace treadle::stable_abi;  // NOLINT

void treadle_stable_abi_set_python(const PythonFunctions* functions) {
  stable_abi::functions.store(functions);
}

AOTITorchError torch_is_tensor_pyobject(void* object, bool* result) {
  return guarded([&] { *result = require_python().is_tensor(given(object, "an object")); });
}
AOTITorchError torch_tensor_from_pyobject(void* object, AtenTensorHandle* result) {
  return guarded(
      [&] { *result = new_handle(require_python().to_tensor(given(object, "an object"))); });
}
AOTITorchError torch_tensor_to_pyobject(AtenTensorHandle tensor, void* type, void** result) {
  return guarded([&] { *result = require_python().from_tensor(tensor_of(tensor), type); });
}
AOTITorchError torch_dtype_from_pyobject(void* object, int32_t* result) {
  return guarded(
      [&] { *result = number_of(require_python().to_dtype(given(object, "an object"))); });
}
AOTITorchError torch_dtype_to_pyobject(int32_t dtype, void** result) {
  return guarded([&] { *result = require_python().from_dtype(dtype_of(dtype)); });
}
AOTITorchError torch_device_from_pyobject(void* object, int32_t* type, int32_t* index) {
  return guarded([&] {
    const Device device = require_python().to_device(given(object, "an object"));
    *type = number_of(device.type);
    *index = device.index;
  });
}
AOTITorchError torch_device_to_pyobject(int32_t type, int32_t index, void** result) {
  return guarded([&] { *result = require_python().from_device(device_of(type, index)); });
}
