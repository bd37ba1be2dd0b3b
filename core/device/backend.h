// Backend: the services that Treadle needs from a kind of device outside of it: memory, copies of
// bytes, generated kernels, streams. One backend is registered for each such device type, at run
// time.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/array_ref.h"
#include "core/base/device.h"
#include "core/base/scalar_type.h"
#include "core/memory/allocator.h"

namespace treadle {

class CachingAllocator;  // core/memory/caching_allocator.h
class DeviceTrace;       // core/device/device_trace.h
class Graphs;            // core/device/graphs.h
class Operator;
class Tensor;
struct GeneratedPointwise;  // aten/engine/backends/generated.h
struct GeneratedReduce;

// Bytes on a device. `storage` is the value that the backend's allocate() returned, or, on the CPU,
// an address.
struct MemoryPlace {
  void* storage;
  int64_t offset;
  Device device;
};

// All functions throw Error. `index` is that of a device, 0 <= index < device_count().
class Backend {
 public:
  virtual ~Backend() = default;

  virtual int device_count() = 0;
  virtual void set_device(int index) = 0;
  virtual void* allocate(int index, size_t nbytes) = 0;
  virtual void deallocate(int index, void* storage, size_t nbytes) noexcept = 0;
  // False: declined. The bytes then go through the CPU.
  virtual bool copy(MemoryPlace to, MemoryPlace from, size_t nbytes, bool non_blocking) = 0;
  // False: declined.
  virtual bool pointwise(const GeneratedPointwise& call) = 0;
  virtual bool reduce(const GeneratedReduce& call) = 0;
  virtual void synchronize(int index) = 0;

  // Streams by id; 0 is the default one. Events are opaque.
  virtual uint64_t create_stream(int index, int priority) = 0;
  virtual void destroy_stream(int index, uint64_t stream) noexcept = 0;
  virtual void set_stream(int index, uint64_t stream) = 0;
  virtual bool stream_idle(int index, uint64_t stream) = 0;
  virtual void synchronize_stream(int index, uint64_t stream) = 0;
  virtual void* create_event(int index, bool timing) = 0;
  virtual void destroy_event(int index, void* event) noexcept = 0;
  virtual void record_event(int index, void* event, uint64_t stream) = 0;
  virtual void wait_event(int index, void* event, uint64_t stream) = 0;
  virtual bool event_complete(void* event) = 0;
  virtual void synchronize_event(void* event) = 0;
  virtual double elapsed_milliseconds(void* start, void* end) = 0;

  // Pinned memory; null if the backend has none.
  virtual void* allocate_pinned(size_t nbytes) = 0;
  virtual void deallocate_pinned(void* data, size_t nbytes) noexcept = 0;

  virtual std::string device_name(int index) = 0;
  struct Memory {
    size_t free, total;  // 0: unknown
  };
  virtual Memory memory(int index) = 0;
  // Facts about a device, by names such as "processors"; none if the backend reports none.
  virtual std::map<std::string, int64_t> properties(int) { return {}; }

  // Optional parts of a backend; null: it has none.
  virtual Graphs* graphs() { return nullptr; }
  virtual DeviceTrace* trace() { return nullptr; }

  // Facts that do not change.
  struct Facts {
    std::string name, storage_tag;
    std::string plugin, plugin_version;
    ScalarType autocast_dtype;
    uint32_t autocast_dtypes;  // a bit for each dtype
    uint32_t dtypes;           // a bit for each dtype
    bool keeps_memory, host_visible, generates;
    // Storages are addresses on the device, and so is any address inside an allocation. Cached
    // memory is then cut and joined. Otherwise a storage is reused as a whole.
    bool addressable = false;
  };
  const Facts& facts() const { return facts_; }

 protected:
  explicit Backend(Facts facts) : facts_(std::move(facts)) {}

 private:
  Facts facts_;
};

// Registers the device type (by the name in the facts) with its allocator; the backend lives as
// long as the process. ValueError when the name is taken.
DeviceType register_backend(std::unique_ptr<Backend> backend);
// Unregisters the backend of its device type. The name can then be registered again.
void unregister_backend(DeviceType type);
Backend* backend_of(DeviceType type) noexcept;  // null: none
Backend& require_backend(DeviceType type);      // RuntimeError: none
std::vector<DeviceType> backends();             // in the order of their registration
namespace detail {
extern std::atomic<bool> any_backend;
}
inline bool any_backend() { return detail::any_backend.load(std::memory_order_relaxed); }

// This thread's current device of a type, and its current stream there.
int current_device(DeviceType type) noexcept;
void set_current_device(DeviceType type, int index);
uint64_t current_stream(Device device) noexcept;
void set_current_stream(Device device, uint64_t stream);
// The device with its index: the current one if it has none. RuntimeError if there are not that
// many devices. CPU and meta devices are returned unchanged. If the type has no backend, its finder
// is called first.
Device with_index(Device device);

// A function that is called when a program names a device whose type has no backend. It registers
// one and returns an empty text, or returns the reason why there is none. The reason becomes the
// end of a RuntimeError.
using BackendFinder = std::function<std::string()>;
void set_backend_finder(DeviceType type, BackendFinder finder);

// Copies bytes between any two devices. Between two backends, and where one declines, they go
// through the CPU. When it returns, CPU memory may be read or reused; with `non_blocking`, after a
// synchronisation.
void move_bytes(MemoryPlace to, MemoryPlace from, size_t nbytes, bool non_blocking);

// Waits for the work of a stream and destroys it.
void destroy_stream(Device device, uint64_t stream);

// The allocator of a device: all its statistics, a snapshot of its blocks, the additional streams
// that use a tensor's memory, a limit, private pools.
CachingAllocator& memory_of(Device device);
// A summary of a device's memory: the bytes that tensors hold, and the bytes reserved for later
// ones.
struct DeviceMemory {
  int64_t current = 0, peak = 0, reserved = 0, allocations = 0, raw_allocations = 0, frees = 0;
};
DeviceMemory device_memory(Device device);
void reset_peak(Device device);
// Returns unused reserved memory to the backend.
void empty_cache(DeviceType type);

// Whether a fallback to the CPU is allowed. If not, it raises NotImplementedError. It is allowed by
// default.
bool fallback_allowed(DeviceType type) noexcept;
void allow_fallback(DeviceType type, bool allowed) noexcept;

}  // namespace treadle
