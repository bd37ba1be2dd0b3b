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

// What is asked of a device. Functions of events are called with the allocator's lock held, so they
// must not call the allocator, nor wait for a thread that might.
class RawDevice {
 public:
  virtual ~RawDevice() = default;
  virtual std::string name() = 0;  // "cuda:0"
  // Throws Error(OutOfMemory) where there is too little.
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
  // The stream with whose capture the stream is captured, having waited for what is queued there;
  // otherwise itself. Called without the allocator's lock.
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

  // At least nbytes bytes for work on the stream; null for 0. Where the device has too little,
  // waits for its work, gives all free segments back and asks once more; then throws
  // Error(OutOfMemory).
  void* allocate(size_t nbytes, uint64_t stream);
  void deallocate(void* data) noexcept;
  // Says that work on the stream uses the memory of `data`, which allocate() returned. When that is
  // freed, the work has been queued.
  void record_stream(void* data, uint64_t stream);
  // All work on the stream is done, and there will be no more.
  void forget_stream(uint64_t stream);

  // Gives all free segments back to the device.
  void empty_cache();
  // Refuses requests with which more than this part of the device's memory would be reserved.
  // ValueError unless 0 <= fraction <= 1; RuntimeError where the device does not know its memory.
  void set_fraction(double fraction);
  double fraction() const;

  MemoryStatistics statistics() const;
  void reset_peaks();
  void reset_accumulated();
  std::vector<SegmentSnapshot> snapshot() const;  // by address

  // Private pools, for work that is captured to be repeated: its memory must stay where it is.
  // From begin_pool() to end_pool(), requests on the stream, and on those captured with it, are
  // served from segments of the pool alone, and events are left alone. The pool's segments stay
  // reserved until release_pool() has been called as often as begin_pool(). `pool`: one that is to
  // be continued; 0: a new one. RuntimeError for a stream that has a pool already, and for a pool
  // that is not there.
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

  // Blocks that are free are in their pool's set; the others keep their node of it, so that neither
  // freeing nor using them again allocates.
  struct Block {
    void* address;
    size_t size;
    Pool* pool;
    size_t requested = 0;
    BlockState state = BlockState::Inactive;
    Block *previous = nullptr, *next = nullptr;  // neighbours in the segment
    FreeBlocks::node_type node{};
    Uses uses{};        // of other streams; once freed, those without an event
    size_t events = 0;  // once freed: those to pass
    Block* next_deferred = nullptr;
    bool split() const { return previous || next; }
  };
  using Lock = std::unique_lock<ForkSafeMutex>;

  size_t block_size(size_t nbytes) const;
  size_t segment_size(size_t block) const;
  // `captured`: the stream with which the stream is captured.
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
  std::map<uint64_t, int64_t> private_pools_;  // -> how often it is to be released
  uint64_t last_pool_ = 0;
  size_t requested_now_ = 0;  // bytes that threads are asking the device for
  double fraction_ = 1;
  size_t limit_ = SIZE_MAX;  // bytes, of the fraction
  MemoryStatistics statistics_;
};

}  // namespace treadle
