// The part of tvm-ffi's C interface by which its functions are called. A function of a library is
// the symbol __tvm_ffi_NAME, a SafeCall; tensors are passed as pointers to DLTensor.
//
// The structures are those of tvm-ffi 0.1 (https://github.com/apache/tvm-ffi,
// include/tvm/ffi/c_api.h). Nothing of that package is needed to call a function.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/dispatch/borrowed_value.h"
#include "python_bindings/csrc/exchange/dlpack.h"

namespace treadle::python::tvm_ffi {

enum TypeIndex : int32_t {
  kNone = 0,
  kInt = 1,
  kBool = 2,
  kFloat = 3,
  kDataType = 5,
  kDevice = 6,
  kDLTensorPtr = 7,
  kRawStr = 8,
  kObjects = 64,  // values from here on are counted objects
  kTensor = 70,
  kArray = 71
};

// TVMFFIAny.
struct Any {
  int32_t type_index = kNone;
  uint32_t padding = 0;
  union {
    int64_t integer = 0;
    double number;
    void* pointer;
    const char* text;
    DLDataType dtype;
    DLDevice device;
  } as{};
};
static_assert(sizeof(Any) == 16);

// TVMFFISafeCallType. It returns 0, or another number after it has set an error.
using SafeCall = int (*)(void* handle, const Any* arguments, int32_t count, Any* result);

// TVMFFIByteArray, and TVMFFIErrorCell, which follows the header of an error object.
struct ByteArray {
  const char* data;
  size_t size;
};
struct Object {
  uint64_t references;
  int32_t type_index;
  uint32_t padding;
  void (*deleter)(void* self, int flags);
};
struct Error {
  Object header;
  ByteArray kind, message;
};

// A function of a loaded library. The functions of libtvm_ffi are null where it was not loaded.
struct Function {
  std::string name;
  SafeCall call = nullptr;
  void (*move_error)(void** error) = nullptr;  // TVMFFIErrorMoveFromRaised
  int (*release)(void* object) = nullptr;      // TVMFFIObjectDecRef
  // TVMFFITensorToDLPackVersioned and TVMFFITensorFromDLPackVersioned.
  int (*to_dlpack)(void* tensor, DLManagedTensorVersioned** out) = nullptr;
  int (*from_dlpack)(DLManagedTensorVersioned* from, int32_t alignment, int32_t contiguous,
                     void** tensor) = nullptr;
  // TVMFFIFunctionCall, and the function object "ffi.Array", which makes a list of its arguments.
  int (*call_object)(void* function, const Any* arguments, int32_t count, Any* result) = nullptr;
  void* make_array = nullptr;
};

// Loads `path` and finds the function. RuntimeError for a file that is no library or needs one that
// is not there, ValueError for a library without the function.
std::shared_ptr<const Function> load(const std::string& path, const std::string& name);

// Throws what the function has raised when it returned `status`.
[[noreturn]] void raise_error(const Function& function, int status);

// Calls the function with values that a boxed call borrows. Throws the function's error.
void call(const Function& function, ArrayRef<BorrowedValue> values);

}  // namespace treadle::python::tvm_ffi
