// Tensors, dtypes and devices from Python objects, and as such. Objects are PyObject*; the caller
// holds the interpreter lock; results are new references.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/stable/tensor.h>

HIDDEN_NAMESPACE_BEGIN(torch, stable)

#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_14_0
inline Tensor tensor_from_pyobject(void* object) {
  AtenTensorHandle tensor = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(torch_tensor_from_pyobject(object, &tensor));
  return Tensor(tensor);
}
// `type` is the exact class of the result; null means Tensor.
inline void* tensor_to_pyobject(const Tensor& tensor, void* type = nullptr) {
  void* object = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(torch_tensor_to_pyobject(tensor.get(), type, &object));
  return object;
}
#endif

#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_15_0
inline bool is_tensor_pyobject(void* object) {
  bool result = false;
  STABLE_TORCH_ERROR_CODE_CHECK(torch_is_tensor_pyobject(object, &result));
  return result;
}
inline ScalarType dtype_from_pyobject(void* object) {
  int32_t number = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(torch_dtype_from_pyobject(object, &number));
  return detail::dtype_of(number);
}
inline void* dtype_to_pyobject(ScalarType dtype) {
  void* object = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(torch_dtype_to_pyobject(detail::number_of(dtype), &object));
  return object;
}
inline Device device_from_pyobject(void* object) {
  int32_t type = 0, index = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(torch_device_from_pyobject(object, &type, &index));
  return {detail::device_type_of(type), index};
}
inline void* device_to_pyobject(const Device& device) {
  void* object = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(
      torch_device_to_pyobject(detail::number_of(device.type()), device.index(), &object));
  return object;
}
#endif

HIDDEN_NAMESPACE_END(torch, stable)
