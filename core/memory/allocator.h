// Allocator: the source of the bytes of storages, one per device type.
//
// SPDX-License-Identifier: Apache-2.0
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
  // 1024, else 16. Throws Error(OutOfMemory) that names the requested size.
  virtual void* allocate(size_t nbytes, Device device) = 0;
  // `data` is the result of allocate() for that many bytes of that device.
  virtual void deallocate(void* data, size_t nbytes, Device device) noexcept = 0;
};

// A text for people: "512 bytes", "1.5 MiB".
std::string readable_size(size_t nbytes);

Allocator& cpu_allocator();
// Passes a block of the CPU's allocator that consists of whole pages to the caller, who unmaps
// them, and returns their size. For another block it does nothing and returns 0.
size_t surrender_pages(void* data, size_t nbytes) noexcept;
// Throws RuntimeError when the device type has none.
Allocator& allocator_for(DeviceType type);
void register_allocator(DeviceType type, Allocator* allocator);

// The CPU's memory that this thread has taken since it began.
struct ThreadMemory {
  int64_t net_bytes = 0;  // allocated less freed
  int64_t allocations = 0;
};
ThreadMemory thread_memory();

struct MemoryStats {
  int64_t current_bytes = 0, peak_bytes = 0, allocations = 0, frees = 0;
};
MemoryStats cpu_memory_stats();

}  // namespace treadle
