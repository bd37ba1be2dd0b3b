// Allocator: the source of the bytes of storages, one per device type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/device.h"

namespace treadle {

class Allocator {
 public:
  virtual ~Allocator() = default;
  // Returns at least `nbytes` writable bytes (nullptr only for 0), aligned to 64 where nbytes >
  // 1024, else 16. Throws Error(OutOfMemory) that says what was asked.
  virtual void* allocate(size_t nbytes, Device device) = 0;
  // What allocate() returned for that many bytes of that device.
  virtual void deallocate(void* data, size_t nbytes, Device device) noexcept = 0;
};

// For people: "512 bytes", "1.5 MiB".
std::string readable_size(size_t nbytes);

Allocator& cpu_allocator();
// A block of the CPU's allocator that is made of whole pages goes over to the caller, who unmaps
// them; returns their size. Of another block nothing happens, and 0 is returned.
size_t surrender_pages(void* data, size_t nbytes) noexcept;
// Throws RuntimeError when the device type has none.
Allocator& allocator_for(DeviceType type);
void register_allocator(DeviceType type, Allocator* allocator);

// Bytes that this thread has allocated on the CPU, less those it has freed, since it began.
int64_t thread_net_bytes();

struct MemoryStats {
  int64_t current_bytes = 0, peak_bytes = 0, allocations = 0, frees = 0;
};
MemoryStats cpu_memory_stats();

}  // namespace treadle
