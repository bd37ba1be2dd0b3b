// The current device and stream of the accelerator.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <torch/csrc/stable/c/shim.h>
#include <torch/csrc/stable/macros.h>

HIDDEN_NAMESPACE_BEGIN(torch, stable, accelerator)

using DeviceIndex = int32_t;
using StreamId = int64_t;

// While it lives, a device is the current one of the thread.
class DeviceGuard {
 public:
  explicit DeviceGuard(DeviceIndex index) {
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_create_device_guard(index, &guard_));
  }
  ~DeviceGuard() { aoti_torch_delete_device_guard(guard_); }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  void set_index(DeviceIndex index) {
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_device_guard_set_index(guard_, index));
  }

 private:
  DeviceGuardHandle guard_ = nullptr;
};

class Stream {
 public:
  // Takes over the handle.
  explicit Stream(StreamHandle stream)
      : stream_(stream, [](StreamHandle s) { aoti_torch_delete_stream(s); }) {}
  StreamId id() const {
    StreamId id = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_stream_id(stream_.get(), &id));
    return id;
  }
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
  void* nativeHandle() const {
    void* handle = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_stream_native_handle(stream_.get(), &handle));
    return handle;
  }
#endif

 private:
  std::shared_ptr<StreamOpaque> stream_;
};

inline Stream getCurrentStream(DeviceIndex index) {
  StreamHandle stream = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_stream(index, &stream));
  return Stream(stream);
}
inline DeviceIndex getCurrentDeviceIndex() {
  DeviceIndex index = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_device_index(&index));
  return index;
}

HIDDEN_NAMESPACE_END(torch, stable, accelerator)
