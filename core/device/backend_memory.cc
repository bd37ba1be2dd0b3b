// Connects a backend's functions to the allocators of its devices.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/device/backend_memory.h"

#include "core/device/graphs.h"

namespace treadle {
namespace {

class DeviceOfBackend final : public RawDevice {
 public:
  DeviceOfBackend(Backend& backend, Device device) : backend_(backend), device_(device) {}

  std::string name() override { return to_string(device_); }
  void* allocate(size_t nbytes) override { return backend_.allocate(device_.index, nbytes); }
  void deallocate(void* data, size_t nbytes) noexcept override {
    backend_.deallocate(device_.index, data, nbytes);
  }
  void synchronize() override { backend_.synchronize(device_.index); }
  void* create_event() override { return backend_.create_event(device_.index, false); }
  void destroy_event(void* event) noexcept override {
    backend_.destroy_event(device_.index, event);
  }
  void record_event(void* event, uint64_t stream) override {
    backend_.record_event(device_.index, event, stream);
  }
  bool event_complete(void* event) override { return backend_.event_complete(event); }
  Memory memory() override {
    const Backend::Memory memory = backend_.memory(device_.index);
    return {memory.free, memory.total};
  }
  uint64_t captured_with(uint64_t stream) override {
    Graphs* const graphs = backend_.graphs();
    return graphs ? graphs->captured_with(device_.index, stream).value_or(stream) : stream;
  }

 private:
  Backend& backend_;
  Device device_;
};

Reuse reuse_of(const Backend::Facts& facts) {
  if (!facts.keeps_memory) return Reuse::None;
  return facts.addressable ? Reuse::Split : Reuse::Whole;
}

}  // namespace

struct BackendMemory::OfDevice {
  OfDevice(Backend& backend, Device device)
      : raw(backend, device), memory(raw, reuse_of(backend.facts())) {}
  DeviceOfBackend raw;
  CachingAllocator memory;
};

BackendMemory::~BackendMemory() {
  for (auto& device : devices_) delete device.load();
}

CachingAllocator& BackendMemory::of(int index) {
  std::atomic<OfDevice*>& device = devices_.at(static_cast<size_t>(index));
  if (OfDevice* found = device.load(std::memory_order_acquire)) return found->memory;
  const std::lock_guard lock(mutex_);
  if (!device.load(std::memory_order_relaxed))
    device.store(new OfDevice(backend_, {type_, static_cast<int8_t>(index)}),
                 std::memory_order_release);
  return device.load(std::memory_order_relaxed)->memory;
}

void* BackendMemory::allocate(size_t nbytes, Device device) {
  return of(device.index).allocate(nbytes, current_stream(device));
}

void BackendMemory::deallocate(void* data, size_t, Device device) noexcept {
  of(device.index).deallocate(data);
}

void BackendMemory::empty_caches() {
  for (auto& device : devices_)
    if (OfDevice* found = device.load(std::memory_order_acquire)) found->memory.empty_cache();
}

}  // namespace treadle
