// The functions that tell facts of a tensor.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/meta.h"
#include "stable_abi/boundary.h"
#include "stable_abi/numbers.h"

namespace treadle::stable_abi {
namespace {

// An extension may write through the address, so the storage knows that it was told.
void* address_of(AtenTensorHandle handle) {
  const Tensor& tensor = tensor_of(handle);
  check<ErrorKind::Runtime>(tensor.is_strided(),
                            "expected a strided tensor, which has elements in "
                            "memory, got one of the layout ",
                            tensor.layout());
  if (tensor.numel() == 0 || tensor.is_meta()) return nullptr;
  tensor.storage()->set_told();
  return tensor.data();
}

const Tensor& strided(AtenTensorHandle handle) {
  const Tensor& tensor = tensor_of(handle);
  check<ErrorKind::Runtime>(tensor.is_strided(),
                            "expected a strided tensor, which has strides, "
                            "got one of the layout ",
                            tensor.layout());
  return tensor;
}

}  // namespace
}  // namespace treadle::stable_abi

using namespace treadle;              // NOLINT
using namespace treadle::stable_abi;  // NOLINT

AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** result) {
  return guarded([&] { *result = address_of(tensor); });
}
AOTITorchError torch_get_mutable_data_ptr(AtenTensorHandle tensor, void** result) {
  return guarded([&] { *result = address_of(tensor); });
}
AOTITorchError torch_get_const_data_ptr(AtenTensorHandle tensor, const void** result) {
  return guarded([&] { *result = address_of(tensor); });
}
AOTITorchError aoti_torch_get_storage_size(AtenTensorHandle tensor, int64_t* bytes) {
  return guarded([&] { *bytes = static_cast<int64_t>(strided(tensor).storage()->nbytes()); });
}
AOTITorchError aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* result) {
  return guarded([&] { *result = tensor_of(tensor).dim(); });
}
AOTITorchError aoti_torch_get_numel(AtenTensorHandle tensor, int64_t* result) {
  return guarded([&] { *result = tensor_of(tensor).numel(); });
}
AOTITorchError aoti_torch_get_storage_numel(AtenTensorHandle tensor, int64_t* result) {
  return guarded([&] {
    const Tensor& t = strided(tensor);
    *result = static_cast<int64_t>(t.storage()->nbytes()) / t.element_size();
  });
}
AOTITorchError aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t** result) {
  return guarded([&] { *result = const_cast<int64_t*>(tensor_of(tensor).sizes().data()); });
}
AOTITorchError aoti_torch_get_size(AtenTensorHandle tensor, int64_t dim, int64_t* result) {
  return guarded([&] { *result = tensor_of(tensor).size(dim); });
}
AOTITorchError aoti_torch_get_strides(AtenTensorHandle tensor, int64_t** result) {
  return guarded([&] { *result = const_cast<int64_t*>(strided(tensor).strides().data()); });
}
AOTITorchError aoti_torch_get_stride(AtenTensorHandle tensor, int64_t dim, int64_t* result) {
  return guarded([&] { *result = strided(tensor).stride(dim); });
}
AOTITorchError aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t* result) {
  return guarded([&] { *result = number_of(tensor_of(tensor).dtype()); });
}
AOTITorchError aoti_torch_get_device_type(AtenTensorHandle tensor, int32_t* result) {
  return guarded([&] { *result = number_of(tensor_of(tensor).device().type); });
}
AOTITorchError aoti_torch_get_device_index(AtenTensorHandle tensor, int32_t* result) {
  return guarded([&] { *result = tensor_of(tensor).device().index; });
}
AOTITorchError aoti_torch_get_layout(AtenTensorHandle tensor, int32_t* result) {
  return guarded([&] { *result = number_of(tensor_of(tensor).layout()); });
}
AOTITorchError aoti_torch_get_storage_offset(AtenTensorHandle tensor, int64_t* result) {
  return guarded([&] { *result = strided(tensor).storage_offset(); });
}
AOTITorchError aoti_torch_is_contiguous(AtenTensorHandle tensor, bool* result) {
  return guarded([&] {
    const Tensor& t = tensor_of(tensor);
    *result = t.is_strided() && t.is_contiguous();
  });
}
AOTITorchError aoti_torch_is_defined(AtenTensorHandle tensor, bool* result) {
  return guarded([&] { *result = any_tensor_of(tensor).defined(); });
}
AOTITorchError torch_has_storage(AtenTensorHandle tensor, bool* result) {
  return guarded([&] {
    const Tensor& t = any_tensor_of(tensor);
    *result = t.defined() && t.is_strided();
  });
}
AOTITorchError torch_set_requires_grad(AtenTensorHandle tensor, bool requires_grad) {
  return guarded([&] { autograd::set_requires_grad(tensor_of(tensor), requires_grad); });
}

bool aoti_torch_grad_mode_is_enabled() { return grad_enabled(); }
void aoti_torch_grad_mode_set_enabled(bool enabled) { autograd_mode().grad = enabled; }
