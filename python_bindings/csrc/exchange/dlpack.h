// DLPack: the exchange of tensors with other libraries in one process, without copying.
//
// The structures are those of DLPack's published binary interface, version 1.3
// (https://github.com/dmlc/dlpack, include/dlpack/dlpack.h).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor/tensor.h"
#include "python_bindings/csrc/python.h"

namespace treadle::python {

struct DLDevice {
  int32_t type;  // 1 CPU, 2 CUDA
  int32_t id;
};
struct DLDataType {
  uint8_t code;  // 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 10 to 14 float8, 17 float4
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: contiguous
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor* self);
};
struct DLPackVersion {
  uint32_t major, minor;
};
inline constexpr DLPackVersion kDLPackVersion = {1, 3};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* context;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor tensor;
};
inline constexpr uint64_t kDLReadOnly = 1, kDLIsCopied = 2, kDLIsPadded = 4;  // of the flags

// The functions by which other libraries exchange tensors without Python calls. None of them waits
// for a device's work. Those that return an int return -1 with a Python exception set (the first:
// after SetError).
struct DLPackExchangeAPI {
  DLPackVersion version;
  DLPackExchangeAPI* previous;  // for consumers of an older major version
  int (*allocate)(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*from_object)(void* object, DLManagedTensorVersioned** out);
  int (*to_object)(DLManagedTensorVersioned* tensor, void** out_object);
  int (*borrow)(void* object, DLTensor* out);  // valid as long as the caller's reference
  int (*current_stream)(int32_t device_type, int32_t device_id, void** out_stream);
};

// Raises BufferError, which consumers expect of a tensor that cannot be exported.
[[noreturn]] void refuse_export(const std::string& message);
// A capsule over the tensor, of `version`; of the form before version 1 without one. BufferError
// for a tensor that cannot be exported: it requires grad, or is read-only, which the old form
// cannot say.
PyObject* tensor_to_dlpack(const Tensor& t, std::optional<DLPackVersion> version, bool copied);
// From a capsule, or anything with __dlpack__.
Tensor tensor_from_dlpack(PyObject* source);

// The description of a tensor on the CPU for others; the pointers are those of the tensor itself.
// An error of `op` for one that DLPack cannot describe.
void describe_tensor(const Tensor& t, DLTensor& out, const char* op);
// The same with BufferError, for __dlpack__.
void describe_for_export(const Tensor& t, DLTensor& out);
// A dtype in DLPack's terms, and back. TypeError of `op` where there is none.
DLDataType dl_type(ScalarType dtype, const char* op);
ScalarType dtype_of_dl(DLDataType type, const char* op);
// With flags for the consumer, beside that of a read-only tensor.
DLManagedTensorVersioned* make_versioned(const Tensor& t, DLPackVersion version, uint64_t flags);
// A tensor over the memory, which it takes over, also where it throws.
Tensor take_versioned(DLManagedTensorVersioned* managed);
// Adds __dlpack_c_exchange_api__ to the type of tensors.
void add_exchange_api(PyTypeObject* type);

}  // namespace treadle::python
