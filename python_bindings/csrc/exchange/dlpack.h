// DLPack: the exchange of tensors with other libraries in one process, without copying.
//
// The structures are those of DLPack's published binary interface, version 1.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"
#include "python_bindings/csrc/python.h"

namespace treadle::python {

struct DLDevice {
  int32_t type;  // 1 CPU, 2 CUDA
  int32_t id;
};
struct DLDataType {
  uint8_t code;  // 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool
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
struct DLManagedTensorVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* context;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;  // bit 0: read-only
  DLTensor tensor;
};

// Raises BufferError, which consumers expect of a tensor that cannot be exported.
[[noreturn]] void refuse_export(const std::string& message);
// A capsule over the tensor; versioned if the consumer knows version 1.
PyObject* tensor_to_dlpack(const Tensor& t, bool versioned);
// From a capsule, or anything with __dlpack__.
Tensor tensor_from_dlpack(PyObject* source);

}  // namespace treadle::python
