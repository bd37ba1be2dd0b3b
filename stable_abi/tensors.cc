// The functions that make tensors: handles of others, new memory, memory of the extension.
//
// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "aten/ops/clone.h"
#include "aten/ops/copy_.h"
#include "aten/ops/zero_.h"
#include "core/base/checked.h"
#include "core/device/backend.h"
#include "stable_abi/boundary.h"
#include "stable_abi/numbers.h"

namespace treadle::stable_abi {
namespace {

IntList sizes_of(const int64_t* values, int64_t count, const char* what) {
  check<ErrorKind::Value>(count >= 0, "expected a count of dimensions, got ", count);
  if (count > 0) given(values, what);
  return {values, static_cast<size_t>(count)};
}

// Bytes from the memory's beginning to the end of the tensor's last element.
size_t reach_of(IntList sizes, IntList strides, int64_t offset, ScalarType dtype) {
  check<ErrorKind::Value>(offset >= 0, "expected an offset in the memory >= 0, got ", offset);
  const int64_t elements = checked_numel(sizes, item_size(dtype));
  Checked reach = offset;
  for (size_t d = 0; elements > 0 && d < sizes.size(); ++d) {
    check<ErrorKind::Value>(strides[d] >= 0, "expected strides >= 0, got ", strides);
    reach += Checked(sizes[d] - 1) * strides[d];
  }
  if (elements > 0) reach += 1;
  reach *= item_size(dtype);
  check<ErrorKind::Value>(reach.fits(), "expected memory whose bytes can be counted, got sizes ",
                          sizes, " and strides ", strides);
  return static_cast<size_t>(reach.value());
}

struct Blob {
  void* data;
  int64_t ndim;
  const int64_t *sizes, *strides;
  int64_t offset;
  int32_t dtype, device_type, device_index, layout;
};

AtenTensorHandle tensor_over(const Blob& blob, std::function<void()> release) {
  const IntList sizes = sizes_of(blob.sizes, blob.ndim, "sizes");
  const IntList strides = sizes_of(blob.strides, blob.ndim, "strides");
  check<ErrorKind::NotImplemented>(layout_of(blob.layout) == Layout::Strided,
                                   "expected a strided tensor over memory, got the layout ",
                                   layout_of(blob.layout));
  const ScalarType dtype = dtype_of(blob.dtype);
  const Device device = with_index(device_of(blob.device_type, blob.device_index));
  const size_t bytes = reach_of(sizes, strides, blob.offset, dtype);
  check<ErrorKind::Value>(blob.data || bytes == 0 || !device.is_cpu(), "expected memory of ", bytes,
                          " bytes, got a null pointer");
  auto storage = make_intrusive<StorageImpl>(blob.data, bytes, device, std::move(release));
  return new_handle(
      Tensor(make_intrusive<TensorImpl>(std::move(storage), dtype, sizes, strides, blob.offset)));
}

}  // namespace
}  // namespace treadle::stable_abi

using namespace treadle;              // NOLINT
using namespace treadle::stable_abi;  // NOLINT

AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor) {
  return guarded([&] { delete reinterpret_cast<Tensor*>(tensor); });
}
AOTITorchError aoti_torch_new_tensor_handle(AtenTensorHandle tensor, AtenTensorHandle* result) {
  return guarded([&] { *result = new_handle(any_tensor_of(tensor)); });
}
AOTITorchError aoti_torch_new_uninitialized_tensor(AtenTensorHandle* result) {
  return guarded([&] { *result = new_handle({}); });
}
AOTITorchError aoti_torch_assign_tensors(AtenTensorHandle src, AtenTensorHandle dst) {
  return guarded([&] { any_tensor_of(dst) = any_tensor_of(src); });
}
AOTITorchError aoti_torch_empty_strided(int64_t ndim, const int64_t* sizes, const int64_t* strides,
                                        int32_t dtype, int32_t device_type, int32_t device_index,
                                        AtenTensorHandle* result) {
  return guarded([&] {
    *result = new_handle(empty_strided_tensor(sizes_of(sizes, ndim, "sizes"),
                                              sizes_of(strides, ndim, "strides"), dtype_of(dtype),
                                              with_index(device_of(device_type, device_index))));
  });
}
AOTITorchError aoti_torch_create_tensor_from_blob(void* data, int64_t ndim, const int64_t* sizes,
                                                  const int64_t* strides, int64_t storage_offset,
                                                  int32_t dtype, int32_t device_type,
                                                  int32_t device_index, AtenTensorHandle* result) {
  return aoti_torch_create_tensor_from_blob_v2(data, ndim, sizes, strides, storage_offset, dtype,
                                               device_type, device_index, result,
                                               aoti_torch_layout_strided(), nullptr, 0);
}
AOTITorchError aoti_torch_create_tensor_from_blob_v2(void* data, int64_t ndim, const int64_t* sizes,
                                                     const int64_t* strides, int64_t storage_offset,
                                                     int32_t dtype, int32_t device_type,
                                                     int32_t device_index, AtenTensorHandle* result,
                                                     int32_t layout, const uint8_t*, int64_t) {
  return guarded([&] {
    *result = tensor_over(
        {data, ndim, sizes, strides, storage_offset, dtype, device_type, device_index, layout},
        [] {});
  });
}
// The deleter is called by the tensor's end only: after an error the memory is still the caller's.
AOTITorchError torch_from_blob(void* data, int64_t ndim, const int64_t* sizes,
                               const int64_t* strides, int64_t storage_offset, int32_t dtype,
                               int32_t device_type, int32_t device_index, AtenTensorHandle* result,
                               int32_t layout, const uint8_t*, int64_t,
                               void (*deleter)(void* data, void* context), void* context) {
  return guarded([&] {
    *result = tensor_over(
        {data, ndim, sizes, strides, storage_offset, dtype, device_type, device_index, layout},
        [=] {
          if (deleter) deleter(data, context);
        });
  });
}
AOTITorchError aoti_torch_clone(AtenTensorHandle tensor, AtenTensorHandle* result) {
  return guarded([&] { *result = new_handle(aten::clone(tensor_of(tensor))); });
}
AOTITorchError aoti_torch_copy_(AtenTensorHandle self, AtenTensorHandle src, int32_t non_blocking) {
  return guarded([&] { aten::copy_(tensor_of(self), tensor_of(src), non_blocking != 0); });
}
AOTITorchError aoti_torch_zero_(AtenTensorHandle self) {
  return guarded([&] { aten::zero_(tensor_of(self)); });
}
