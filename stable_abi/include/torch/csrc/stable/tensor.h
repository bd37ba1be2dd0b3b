// Tensor: a tensor of the library, shared by the copies of this object.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <memory>
#include <type_traits>

#include <torch/csrc/stable/device.h>
#include <torch/headeronly/util/HeaderOnlyArrayRef.h>

HIDDEN_NAMESPACE_BEGIN(torch, stable)

using torch::headeronly::IntHeaderOnlyArrayRef;
using torch::headeronly::Layout;
using torch::headeronly::ScalarType;

class Tensor {
 public:
  // An undefined one.
  Tensor() : Tensor(undefined()) {}
  // Takes over the handle.
  explicit Tensor(AtenTensorHandle handle)
      : handle_(handle, [](AtenTensorHandle h) { aoti_torch_delete_tensor_object(h); }) {}

  AtenTensorHandle get() const { return handle_.get(); }

  void* data_ptr() const { return ask<void*>(&aoti_torch_get_data_ptr); }
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0
  void* mutable_data_ptr() const { return ask<void*>(&torch_get_mutable_data_ptr); }
  const void* const_data_ptr() const { return ask<const void*>(&torch_get_const_data_ptr); }
  // RuntimeError for a tensor of another dtype.
  template <typename T>
  T* mutable_data_ptr() const {
    require_dtype<T>();
    return static_cast<T*>(mutable_data_ptr());
  }
  template <typename T, std::enable_if_t<!std::is_const_v<T>, int> = 0>
  const T* const_data_ptr() const {
    require_dtype<T>();
    return static_cast<const T*>(const_data_ptr());
  }
  const Tensor& set_requires_grad(bool requires_grad) const {
    STABLE_TORCH_ERROR_CODE_CHECK(torch_set_requires_grad(get(), requires_grad));
    return *this;
  }
#endif
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_14_0
  bool has_storage() const { return ask<bool>(&torch_has_storage); }
#endif

  int64_t dim() const { return ask<int64_t>(&aoti_torch_get_dim); }
  int64_t numel() const { return ask<int64_t>(&aoti_torch_get_numel); }
  IntHeaderOnlyArrayRef sizes() const {
    return {ask<int64_t*>(&aoti_torch_get_sizes), static_cast<size_t>(dim())};
  }
  IntHeaderOnlyArrayRef strides() const {
    return {ask<int64_t*>(&aoti_torch_get_strides), static_cast<size_t>(dim())};
  }
  int64_t size(int64_t dim) const {
    int64_t size = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_size(get(), dim, &size));
    return size;
  }
  int64_t stride(int64_t dim) const {
    int64_t stride = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_stride(get(), dim, &stride));
    return stride;
  }
  int64_t storage_offset() const { return ask<int64_t>(&aoti_torch_get_storage_offset); }
  size_t element_size() const {
    return aoti_torch_dtype_element_size(ask<int32_t>(&aoti_torch_get_dtype));
  }
  bool is_contiguous() const { return ask<bool>(&aoti_torch_is_contiguous); }
  bool defined() const { return ask<bool>(&aoti_torch_is_defined); }

  ScalarType scalar_type() const { return detail::dtype_of(ask<int32_t>(&aoti_torch_get_dtype)); }
  Layout layout() const { return detail::layout_of(ask<int32_t>(&aoti_torch_get_layout)); }
  Device device() const {
    return {detail::device_type_of(ask<int32_t>(&aoti_torch_get_device_type)), get_device_index()};
  }
  DeviceIndex get_device_index() const { return ask<int32_t>(&aoti_torch_get_device_index); }
  int8_t get_device() const { return static_cast<int8_t>(get_device_index()); }
  bool is_cuda() const {
    return ask<int32_t>(&aoti_torch_get_device_type) == aoti_torch_device_type_cuda();
  }
  bool is_cpu() const {
    return ask<int32_t>(&aoti_torch_get_device_type) == aoti_torch_device_type_cpu();
  }

 private:
  static AtenTensorHandle undefined() {
    AtenTensorHandle handle = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_new_uninitialized_tensor(&handle));
    return handle;
  }
  template <typename T>
  T ask(AOTITorchError (*function)(AtenTensorHandle, T*)) const {
    T result{};
    STABLE_TORCH_ERROR_CODE_CHECK(function(get(), &result));
    return result;
  }
  template <typename T>
  void require_dtype() const {
    constexpr ScalarType expected = torch::headeronly::CppTypeToScalarType<T>::value;
    const ScalarType dtype = scalar_type();
    STD_TORCH_CHECK(dtype == expected, "expected a tensor of dtype ",
                    torch::headeronly::toString(expected), ", got ",
                    torch::headeronly::toString(dtype));
  }

  std::shared_ptr<AtenTensorOpaque> handle_;
};

HIDDEN_NAMESPACE_END(torch, stable)
