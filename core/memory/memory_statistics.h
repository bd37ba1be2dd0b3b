// The statistics of a device's memory: counts, and a snapshot of its segments and blocks.
//
// A segment is one piece of memory from the device. It is cut into blocks. A block is active from
// its request until it may be reused, and inactive after that.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace treadle {

// One quantity: its value, its peak since the start or a reset, and the sums of all increases and
// decreases.
struct Statistic {
  int64_t current = 0, peak = 0, allocated = 0, freed = 0;

  void change(int64_t by) {
    current += by;
    if (by > 0) {
      allocated += by;
      if (current > peak) peak = current;
    } else {
      freed -= by;
    }
  }
  void reset_peak() { peak = current; }
  void reset_accumulated() { allocated = freed = 0; }
  friend bool operator==(const Statistic&, const Statistic&) = default;
};

// A quantity of all memory, of blocks for requests of at most 1 MiB, and of blocks for larger ones.
struct PooledStatistic {
  Statistic all, small_pool, large_pool;

  void change(bool large, int64_t by) {
    all.change(by);
    (large ? large_pool : small_pool).change(by);
  }
  void reset_peak() {
    for (Statistic* s : {&all, &small_pool, &large_pool}) s->reset_peak();
  }
  void reset_accumulated() {
    for (Statistic* s : {&all, &small_pool, &large_pool}) s->reset_accumulated();
  }
  friend bool operator==(const PooledStatistic&, const PooledStatistic&) = default;
};

// The statistics of one device. Quantities of bytes end in `_bytes`; the others are counts.
struct MemoryStatistics {
  PooledStatistic allocation, allocated_bytes;           // blocks that tensors hold
  PooledStatistic segment, reserved_bytes;               // what the device gave
  PooledStatistic active, active_bytes;                  // held, or waiting for other streams
  PooledStatistic inactive_split, inactive_split_bytes;  // free parts of segments partly in use
  PooledStatistic requested_bytes;                       // what was asked for the active blocks
  int64_t num_alloc_retries = 0;                      // requests to the device that were repeated
  int64_t num_ooms = 0;                               // errors for want of memory
  int64_t num_sync_all_streams = 0;                   // waits for all work of the device
  int64_t num_device_alloc = 0, num_device_free = 0;  // requests to the device that succeeded

  void reset_peaks();
  // Resets all sums and counts to 0.
  void reset_accumulated();
  friend bool operator==(const MemoryStatistics&, const MemoryStatistics&) = default;
};

// The quantities by name.
inline constexpr std::pair<const char*, PooledStatistic MemoryStatistics::*> kPooledStatistics[] = {
    {"allocation", &MemoryStatistics::allocation},
    {"allocated_bytes", &MemoryStatistics::allocated_bytes},
    {"segment", &MemoryStatistics::segment},
    {"reserved_bytes", &MemoryStatistics::reserved_bytes},
    {"active", &MemoryStatistics::active},
    {"active_bytes", &MemoryStatistics::active_bytes},
    {"inactive_split", &MemoryStatistics::inactive_split},
    {"inactive_split_bytes", &MemoryStatistics::inactive_split_bytes},
    {"requested_bytes", &MemoryStatistics::requested_bytes},
};
inline constexpr std::pair<const char*, int64_t MemoryStatistics::*> kMemoryCounts[] = {
    {"num_alloc_retries", &MemoryStatistics::num_alloc_retries},
    {"num_ooms", &MemoryStatistics::num_ooms},
    {"num_sync_all_streams", &MemoryStatistics::num_sync_all_streams},
    {"num_device_alloc", &MemoryStatistics::num_device_alloc},
    {"num_device_free", &MemoryStatistics::num_device_free},
};

inline void MemoryStatistics::reset_peaks() {
  for (const auto& [name, member] : kPooledStatistics) (this->*member).reset_peak();
}
inline void MemoryStatistics::reset_accumulated() {
  for (const auto& [name, member] : kPooledStatistics) (this->*member).reset_accumulated();
  for (const auto& [name, member] : kMemoryCounts) this->*member = 0;
}

enum class BlockState : uint8_t {
  Inactive,   // free for the next request
  Allocated,  // a tensor's
  Pending,    // freed, but other streams may still use it
};

struct BlockSnapshot {
  const void* address;
  size_t size, requested;  // bytes; requested: 0 where inactive
  BlockState state;
};

// Blocks by address, without gaps.
struct SegmentSnapshot {
  const void* address;
  size_t size;
  uint64_t stream;
  uint64_t pool;  // 0: for all; else one of begin_pool()
  bool large;     // for requests of more than 1 MiB
  std::vector<BlockSnapshot> blocks;
};

}  // namespace treadle
