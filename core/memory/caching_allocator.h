// CachingAllocator: the memory of one device. It caches freed blocks for later requests.
//
//   CachingAllocator memory(device, Reuse::Split);
//   void* data = memory.allocate(nbytes, stream);
//   memory.record_stream(data, other);   // work on `other` uses it too
//   memory.deallocate(data);             // work that was queued may still run
//
// A block belongs to the stream that it was allocated on, and serves later requests on that stream
// only. Work that was queued there before the block was freed runs before work that is queued after
// its reuse, so no wait is needed. If other streams used a block, freeing it records an event on
// each of them, and the block is held back until those events have passed.
//
// Requests are rounded up to 512 bytes. Requests of at most 1 MiB are cut from segments of 2 MiB,
// and those below 10 MiB from segments of 20 MiB. A larger request has a segment of its own size,
// rounded up to 2 MiB. The smallest free block that is large enough serves the request, at the
// lowest address. Its rest stays free if it is large enough to be useful (512 bytes of a small
// block, more than 1 MiB of a large one). A freed block is joined with its free neighbours in the
// segment.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/base/fork_safe_mutex.h"
#include "core/memory/memory_statistics.h"

namespace treadle {

// The functions that the allocator needs from a device. Functions of events are called with the
// allocator's lock held. So they must not call the allocator, nor wait for a thread that might.
class RawDevice {
 public:
  virtual ~RawDevice() = default;
  virtual std::string name() = 0;  // "cuda:0"
  // Throws Error(OutOfMemory) if there is too little memory.
  virtual void* allocate(size_t nbytes) = 0;
  // Work that uses the memory may still be queued.
  virtual void deallocate(void* data, size_t nbytes) noexcept = 0;
  virtual void synchronize() = 0;  // waits for all work
  virtual void* create_event() = 0;
  virtual void destroy_event(void* event) noexcept = 0;
  virtual void record_event(void* event, uint64_t stream) = 0;
  virtual bool event_complete(void* event) = 0;
  struct Memory {
    size_t free, total;  // 0: unknown
  };
  virtual Memory memory() = 0;
  // The stream whose capture includes this stream, because it has waited for work queued there;
  // otherwise itself. It is called without the allocator's lock.
  virtual uint64_t captured_with(uint64_t stream) { return stream; }
};

enum class Reuse : uint8_t {
  None,   // memory goes back to the device when it is freed
  Whole,  // addresses are handles: a block goes to requests of about its size
  Split,  // blocks are cut and joined, as above
};

// All functions can be called from any thread.
class CachingAllocator {
 public:
  CachingAllocator(RawDevice& device, Reuse reuse) : device_(device), reuse_(reuse) {}
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;

  // At least nbytes bytes for work on the stream; null for 0. If the device has too little memory,
  // it waits for the device's work, returns all free segments and tries once more. Then it throws
  // Error(OutOfMemory).
  void* allocate(size_t nbytes, uint64_t stream);
  void deallocate(void* data) noexcept;
  // Records that work on the stream uses the memory of `data`, a result of allocate(). That work
  // must be queued before the memory is freed.
  void record_stream(void* data, uint64_t stream);
  // All work on the stream is done, and no more will be queued.
  void forget_stream(uint64_t stream);

  // Returns all free segments to the device.
  void empty_cache();
  // Limits reserved memory to this fraction of the device's memory. Requests beyond it are refused.
  // ValueError unless 0 <= fraction <= 1; RuntimeError if the device does not know its memory.
  void set_fraction(double fraction);
  double fraction() const;

  MemoryStatistics statistics() const;
  void reset_peaks();
  void reset_accumulated();
  std::vector<SegmentSnapshot> snapshot() const;  // by address

  // Private pools, for captured work that is repeated: its memory must stay at its address. From
  // begin_pool() to end_pool(), requests on the stream, and on those captured with it, are served
  // only from segments of the pool, and no events are used. The pool's segments stay reserved until
  // release_pool() has been called as often as begin_pool(). `pool` is a pool that is continued; 0:
  // a new one. RuntimeError for a stream that already has a pool, and for an unknown pool.
  uint64_t begin_pool(uint64_t stream, uint64_t pool = 0);
  void end_pool(uint64_t stream);
  void release_pool(uint64_t pool);

 private:
  struct Block;
  struct BySize {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const;
    bool operator()(const Block* a, size_t size) const;
  };
  using FreeBlocks = std::set<Block*, BySize>;

  // Work of a stream that uses a block.
  struct Use {
    uint64_t stream;
    void* event;
    Block* block;
  };
  using Uses = std::list<Use>;

  using PoolKey = std::tuple<uint64_t, uint64_t, bool>;  // private pool or 0, stream, large
  struct Pool {
    PoolKey key;
    FreeBlocks free;
    size_t segments = 0;  // that it has, and requests for more
    uint64_t id() const { return std::get<0>(key); }
    uint64_t stream() const { return std::get<1>(key); }
    bool large() const { return std::get<2>(key); }
  };

  // Free blocks are in the set of their pool. The others keep their node of that set, so neither
  // freeing nor reuse allocates.
  struct Block {
    void* address;
    size_t size;
    Pool* pool;
    size_t requested = 0;
    BlockState state = BlockState::Inactive;
    Block *previous = nullptr, *next = nullptr;  // neighbours in the segment
    FreeBlocks::node_type node{};
    Uses uses{};        // of other streams; once freed, those without an event
    size_t events = 0;  // once freed: the events that must pass
    Block* next_deferred = nullptr;
    bool split() const { return previous || next; }
  };
  using Lock = std::unique_lock<ForkSafeMutex>;

  size_t block_size(size_t nbytes) const;
  size_t segment_size(size_t block) const;
  // `captured` is the stream whose capture includes this one.
  Pool& pool_of(uint64_t stream, uint64_t captured, bool large);
  FreeBlocks::iterator find(Pool& pool, size_t size);
  Block& take(Pool& pool, FreeBlocks::iterator found, size_t size);
  Block& new_block(void* address, size_t size, Pool& pool);
  void set_free(Block& block) noexcept;
  void join(Block& block, Block& next) noexcept;

  void ask_device(Lock& lock, Pool& pool, size_t size, size_t nbytes);
  bool add_segment(Lock& lock, Pool& pool, size_t size, std::string& refusal);
  void release_free(Lock& lock);
  size_t detach(Block& segment) noexcept;
  [[noreturn]] void refuse(size_t nbytes, const std::string& why);

  bool capturing() const { return !captures_.empty(); }
  void record_uses(Block& block) noexcept;
  void poll();
  void passed(Uses& queue) noexcept;

  RawDevice& device_;
  const Reuse reuse_;
  mutable ForkSafeMutex mutex_;
  std::unordered_map<void*, Block> blocks_;  // all, by address
  std::map<PoolKey, Pool> pools_;
  std::map<uint64_t, Uses> pending_;  // events to pass, by stream, in the order of their record
  Uses spare_;                        // with events to be used again
  size_t pending_blocks_ = 0;         // that wait for them
  Block* deferred_ = nullptr;         // freed during a capture, used by other streams
  std::map<uint64_t, uint64_t> captures_;      // stream -> private pool
  std::atomic<bool> any_capture_{false};       // whether there are any, for who has no lock
  std::map<uint64_t, int64_t> private_pools_;  // -> the number of releases that are due
  uint64_t last_pool_ = 0;
  size_t requested_now_ = 0;  // bytes that threads are requesting from the device
  double fraction_ = 1;
  size_t limit_ = SIZE_MAX;  // bytes, from the fraction
  MemoryStatistics statistics_;
};

}  // namespace treadle
