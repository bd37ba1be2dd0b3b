// The registry of backends, and a thread's current devices and streams.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/device/backend.h"

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/fork_safe_mutex.h"
#include "core/device/backend_memory.h"

namespace treadle {
namespace {

size_t slot(DeviceType type) { return static_cast<size_t>(type); }

// The state of a device type. Never destroyed: tensors are freed while the program ends.
struct Entry {
  std::atomic<Backend*> backend{nullptr};
  std::atomic<bool> fallback{true};
  BackendMemory* memory = nullptr;
  BackendFinder finder;
};
struct Registry {
  ForkSafeMutex mutex;
  std::array<Entry, kMaxDeviceTypes> entries;
  // Never deleted, because other threads may be in the backend, and tensors in the memory.
  std::vector<std::pair<Backend*, BackendMemory*>> unregistered;
  std::vector<DeviceType> order;
};
Registry& registry() {
  static auto* registry = new Registry;
  return *registry;
}

// The current devices of a thread, and whether it ever set a stream. Most threads never do.
struct Current {
  std::array<int8_t, kMaxDeviceTypes> index{};
  bool has_streams = false;
};
thread_local constinit Current t_current __attribute__((tls_model("initial-exec")));
// Its current streams, by device.
std::map<std::pair<DeviceType, int>, uint64_t>& current_streams() {
  thread_local std::map<std::pair<DeviceType, int>, uint64_t> streams;
  return streams;
}

// An index that the device type has; RuntimeError otherwise.
void require_index(DeviceType type, int index) {
  const int count = require_backend(type).device_count();
  check<ErrorKind::Runtime>(index >= 0 && index < count, "expected a device of ", name_of(type),
                            " that exists, of ", count, count == 1 ? " device" : " devices",
                            ", got ", name_of(type), ":", index);
}

}  // namespace

std::atomic<bool> detail::any_backend{false};

DeviceType register_backend(std::unique_ptr<Backend> backend) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  // The name "cuda" is known before there is a backend for it.
  const bool known = backend->facts().name == name_of(DeviceType::CUDA) &&
                     !r.entries[slot(DeviceType::CUDA)].backend.load();
  const DeviceType type = known ? DeviceType::CUDA : register_device_type(backend->facts().name);
  Entry& entry = r.entries[slot(type)];
  entry.memory = new BackendMemory(*backend, type);
  register_allocator(type, entry.memory);
  entry.fallback = true;
  entry.backend.store(backend.release(), std::memory_order_release);
  r.order.push_back(type);
  detail::any_backend = true;
  return type;
}

void unregister_backend(DeviceType type) {
  Registry& r = registry();
  BackendMemory* memory;
  {
    const std::lock_guard lock(r.mutex);
    Entry& entry = r.entries[slot(type)];
    Backend* backend = entry.backend.exchange(nullptr, std::memory_order_acq_rel);
    if (!backend) return;
    memory = entry.memory;
    r.unregistered.emplace_back(backend, memory);
    std::erase(r.order, type);
    if (type != DeviceType::CUDA) unregister_device_type(type);
  }
  memory->empty_caches();
}

Backend* backend_of(DeviceType type) noexcept {
  return registry().entries[slot(type)].backend.load(std::memory_order_acquire);
}

Backend& require_backend(DeviceType type) {
  if (Backend* backend = backend_of(type)) return *backend;
  fail<ErrorKind::Runtime>("expected a device with a backend, got ", name_of(type),
                           ", for which none is loaded");
}

std::vector<DeviceType> backends() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return r.order;
}

// ---- current devices and streams ----

int current_device(DeviceType type) noexcept { return t_current.index[slot(type)]; }

void set_current_device(DeviceType type, int index) {
  require_index(type, index);
  if (t_current.index[slot(type)] == index) return;
  require_backend(type).set_device(index);
  t_current.index[slot(type)] = static_cast<int8_t>(index);
}

uint64_t current_stream(Device device) noexcept {
  if (!t_current.has_streams) return 0;
  const auto& streams = current_streams();
  const int index = device.index < 0 ? current_device(device.type) : device.index;
  const auto it = streams.find({device.type, index});
  return it == streams.end() ? 0 : it->second;
}

void set_current_stream(Device device, uint64_t stream) {
  const Device exact = with_index(device);
  require_backend(device.type).set_stream(exact.index, stream);
  current_streams()[{exact.type, exact.index}] = stream;
  t_current.has_streams = true;
}

void set_backend_finder(DeviceType type, BackendFinder finder) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.entries[slot(type)].finder = std::move(finder);
}

namespace {
[[gnu::cold]] void find_backend(DeviceType type) {
  BackendFinder finder;
  {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    finder = r.entries[slot(type)].finder;
  }
  if (!finder) return;
  const std::string reason = finder();
  check<ErrorKind::Runtime>(reason.empty(), "expected a device that has memory, got ",
                            name_of(type), ", for which no backend is loaded: ", reason);
}
}  // namespace

Device with_index(Device device) {
  if (device.is_cpu() || device.is_meta()) return device;
  if (!backend_of(device.type)) find_backend(device.type);
  if (device.index < 0) device.index = static_cast<int8_t>(current_device(device.type));
  // A device type without a backend has no allocator either, which says so better. A device that
  // has memory exists.
  if (backend_of(device.type) && !registry().entries[slot(device.type)].memory->has(device.index))
    require_index(device.type, device.index);
  return device;
}

// ---- memory ----

void move_bytes(MemoryPlace to, MemoryPlace from, size_t nbytes, bool non_blocking) {
  if (nbytes == 0) return;
  const bool to_cpu = to.device.is_cpu(), from_cpu = from.device.is_cpu();
  if (to_cpu && from_cpu) {
    std::memmove(static_cast<char*>(to.storage) + to.offset,
                 static_cast<char*>(from.storage) + from.offset, nbytes);
    return;
  }
  const DeviceType type = to_cpu ? from.device.type : to.device.type;
  const bool one_backend = to_cpu || from_cpu || to.device.type == from.device.type;
  if (one_backend && require_backend(type).copy(to, from, nbytes, non_blocking)) return;
  check<ErrorKind::Runtime>(!to_cpu && !from_cpu,
                            "expected a device that copies from and to the cpu, got ",
                            name_of(type), ", which declined");
  const std::unique_ptr<char[]> bytes(new char[nbytes]);
  move_bytes({bytes.get(), 0, kCPU}, from, nbytes, false);
  move_bytes(to, {bytes.get(), 0, kCPU}, nbytes, false);
}

namespace {
BackendMemory& memory_of_type(DeviceType type) {
  require_backend(type);
  return *registry().entries[slot(type)].memory;
}
}  // namespace

CachingAllocator& memory_of(Device device) {
  return memory_of_type(device.type).of(with_index(device).index);
}

DeviceMemory device_memory(Device device) {
  const MemoryStatistics s = memory_of(device).statistics();
  const Statistic &held = s.allocated_bytes.all, &allocation = s.allocation.all;
  return {held.current,         held.peak,          s.reserved_bytes.all.current - held.current,
          allocation.allocated, s.num_device_alloc, allocation.freed};
}
void reset_peak(Device device) { memory_of(device).reset_peaks(); }
void empty_cache(DeviceType type) { memory_of_type(type).empty_caches(); }

void destroy_stream(Device device, uint64_t stream) {
  const Device exact = with_index(device);
  Backend& backend = require_backend(device.type);
  if (stream != 0 && backend.facts().keeps_memory) {
    // A later stream may have the same number, and would use the state of this one.
    backend.synchronize_stream(exact.index, stream);
    memory_of(exact).forget_stream(stream);
  }
  backend.destroy_stream(exact.index, stream);
}

bool fallback_allowed(DeviceType type) noexcept {
  return registry().entries[slot(type)].fallback.load(std::memory_order_relaxed);
}
void allow_fallback(DeviceType type, bool allowed) noexcept {
  registry().entries[slot(type)].fallback.store(allowed, std::memory_order_relaxed);
}

}  // namespace treadle
