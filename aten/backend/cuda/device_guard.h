// DeviceGuard: makes a device current for this thread's CUDA calls, and then restores the previous
// one. It costs a comparison where the device is already current.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cuda/calls.h"

namespace treadle::cuda {

// The current device of this thread's calls.
inline int& active_device() {
  thread_local int device = 0;
  return device;
}
inline void activate(int device) {
  if (active_device() == device) return;
  succeed(calls().set_device(device), "choosing a device");
  active_device() = device;
}

class DeviceGuard {
 public:
  explicit DeviceGuard(int device) : before_(active_device()) { activate(device); }
  DeviceGuard(const DeviceGuard&) = delete;
  ~DeviceGuard() {
    if (active_device() == before_) return;
    // No error can be raised here. The next call for another device reports it.
    calls().set_device(before_);
    active_device() = before_;
  }

 private:
  int before_;
};

}  // namespace treadle::cuda
