// BackendMemory: the allocator of a backend's devices, with one CachingAllocator for each device.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>

#include "core/base/fork_safe_mutex.h"
#include "core/device/backend.h"
#include "core/memory/caching_allocator.h"

namespace treadle {

class BackendMemory final : public Allocator {
 public:
  BackendMemory(Backend& backend, DeviceType type) : backend_(backend), type_(type) {}
  ~BackendMemory() override;

  void* allocate(size_t nbytes, Device device) override;
  void deallocate(void* data, size_t nbytes, Device device) noexcept override;

  CachingAllocator& of(int index);
  // Whether the device was used.
  bool has(int index) const {
    return devices_[static_cast<size_t>(index)].load(std::memory_order_acquire) != nullptr;
  }
  void empty_caches();

 private:
  struct OfDevice;

  Backend& backend_;
  DeviceType type_;
  ForkSafeMutex mutex_;
  // By index; null until the device is used.
  std::array<std::atomic<OfDevice*>, 128> devices_{};
};

}  // namespace treadle
