// The search for blocks, their splitting and joining, their waits, and the reaction to memory that
// runs out.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/memory/caching_allocator.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/error.h"
#include "core/memory/allocator.h"

namespace treadle {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kStep = 512;  // sizes of blocks are multiples of it
constexpr size_t kSmallRequest = kMiB, kSmallSegment = 2 * kMiB;
constexpr size_t kOwnSegment = 10 * kMiB, kLargeSegment = 20 * kMiB, kSegmentStep = 2 * kMiB;
constexpr size_t kMaxRequest = size_t{1} << 62;

constexpr size_t round_up(size_t value, size_t step) { return (value + step - 1) / step * step; }

// For a while, without the lock.
class Unlocked {
 public:
  explicit Unlocked(std::unique_lock<ForkSafeMutex>& lock) : lock_(lock) { lock_.unlock(); }
  ~Unlocked() { lock_.lock(); }
  Unlocked(const Unlocked&) = delete;

 private:
  std::unique_lock<ForkSafeMutex>& lock_;
};

int64_t count(size_t nbytes) { return static_cast<int64_t>(nbytes); }

}  // namespace

bool CachingAllocator::BySize::operator()(const Block* a, const Block* b) const {
  return a->size != b->size ? a->size < b->size : a->address < b->address;
}
bool CachingAllocator::BySize::operator()(const Block* a, size_t size) const {
  return a->size < size;
}

CachingAllocator::~CachingAllocator() {
  for (const auto& [address, first] : blocks_) {
    if (first.previous) continue;
    size_t size = 0;
    for (const Block* b = &first; b; b = b->next) size += b->size;
    device_.deallocate(address, size);
  }
  const auto destroy = [&](const Uses& uses) {
    for (const Use& use : uses) device_.destroy_event(use.event);
  };
  for (const auto& [address, block] : blocks_) destroy(block.uses);
  for (const auto& [stream, queue] : pending_) destroy(queue);
  destroy(spare_);
}

// ---- sizes ----

size_t CachingAllocator::block_size(size_t nbytes) const {
  switch (reuse_) {
    case Reuse::None:
      return nbytes;
    case Reuse::Whole:
      // Few sizes, so that a block serves again: above 64 KiB, eighths of a power of two.
      return round_up(nbytes, nbytes > 65536 ? std::bit_floor(nbytes) / 8 : kStep);
    case Reuse::Split:
      break;
  }
  return round_up(nbytes, kStep);
}

size_t CachingAllocator::segment_size(size_t block) const {
  if (reuse_ != Reuse::Split) return block;
  if (block <= kSmallRequest) return kSmallSegment;
  return block < kOwnSegment ? kLargeSegment : round_up(block, kSegmentStep);
}

// ---- blocks ----

void* CachingAllocator::allocate(size_t nbytes, uint64_t stream) {
  if (nbytes == 0) return nullptr;
  const uint64_t captured =
      any_capture_.load(std::memory_order_relaxed) ? device_.captured_with(stream) : stream;
  Lock lock(mutex_);
  if (nbytes > kMaxRequest) refuse(nbytes, "no device has as much");
  if (pending_blocks_ && !capturing()) poll();
  const size_t size = block_size(nbytes);
  Pool& pool = pool_of(stream, captured, size > kSmallRequest);
  auto found = find(pool, size);
  if (found == pool.free.end()) {
    ask_device(lock, pool, size, nbytes);
    found = find(pool, size);
  }
  Block& block = take(pool, found, size);
  block.state = BlockState::Allocated;
  block.requested = nbytes;
  MemoryStatistics& s = statistics_;
  s.allocation.change(pool.large(), 1);
  s.allocated_bytes.change(pool.large(), count(block.size));
  s.active.change(pool.large(), 1);
  s.active_bytes.change(pool.large(), count(block.size));
  s.requested_bytes.change(pool.large(), count(nbytes));
  return block.address;
}

void CachingAllocator::deallocate(void* data) noexcept {
  Lock lock(mutex_);
  const auto it = blocks_.find(data);
  if (it == blocks_.end() || it->second.state != BlockState::Allocated) return;
  Block& block = it->second;
  const bool large = block.pool->large();
  statistics_.allocation.change(large, -1);
  statistics_.allocated_bytes.change(large, -count(block.size));
  if (!block.uses.empty()) {
    block.state = BlockState::Pending;
    ++pending_blocks_;
    if (!capturing()) return record_uses(block);
    block.next_deferred = std::exchange(deferred_, &block);
    return;
  }
  set_free(block);
  if (reuse_ != Reuse::None) return;
  block.pool->free.erase(&block);
  const size_t size = detach(block);
  const Unlocked outside(lock);
  device_.deallocate(data, size);
}

CachingAllocator::Pool& CachingAllocator::pool_of(uint64_t stream, uint64_t captured, bool large) {
  const auto capture = captures_.find(captured);
  const PoolKey key(capture == captures_.end() ? 0 : capture->second, stream, large);
  const auto it = pools_.find(key);
  return (it != pools_.end() ? it : pools_.emplace(key, Pool{key, {}}).first)->second;
}

CachingAllocator::FreeBlocks::iterator CachingAllocator::find(Pool& pool, size_t size) {
  const auto found = pool.free.lower_bound(size);
  const bool exact = reuse_ == Reuse::Split || found == pool.free.end() || (*found)->size == size;
  return exact ? found : pool.free.end();
}

CachingAllocator::Block& CachingAllocator::new_block(void* address, size_t size, Pool& pool) {
  Block& block = blocks_.try_emplace(address, Block{address, size, &pool}).first->second;
  try {
    FreeBlocks alone{&block};
    block.node = alone.extract(alone.begin());
  } catch (...) {
    blocks_.erase(address);
    throw;
  }
  return block;
}

CachingAllocator::Block& CachingAllocator::take(Pool& pool, FreeBlocks::iterator found,
                                                size_t size) {
  Block& block = **found;
  const size_t rest = block.size - size;
  const bool cut = reuse_ == Reuse::Split && (pool.large() ? rest > kSmallRequest : rest >= kStep);
  const bool was_split = block.split();
  Block* remaining =
      cut ? &new_block(static_cast<char*>(block.address) + size, rest, pool) : nullptr;
  block.node = pool.free.extract(found);  // nothing throws from here on
  if (cut) {
    remaining->previous = &block;
    remaining->next = std::exchange(block.next, remaining);
    if (remaining->next) remaining->next->previous = remaining;
    block.size = size;
    pool.free.insert(std::move(remaining->node));
  }
  MemoryStatistics& s = statistics_;
  if (was_split) {
    if (!cut) s.inactive_split.change(pool.large(), -1);
    s.inactive_split_bytes.change(pool.large(), -count(block.size));
  } else if (cut) {
    s.inactive_split.change(pool.large(), 1);
    s.inactive_split_bytes.change(pool.large(), count(rest));
  }
  return block;
}

void CachingAllocator::set_free(Block& freed) noexcept {
  Block* block = &freed;
  Pool& pool = *block->pool;
  MemoryStatistics& s = statistics_;
  s.active.change(pool.large(), -1);
  s.active_bytes.change(pool.large(), -count(block->size));
  s.requested_bytes.change(pool.large(), -count(block->requested));
  block->state = BlockState::Inactive;
  block->requested = 0;
  block->events = 0;
  int64_t split_blocks = 0, split_bytes = 0;
  const auto joined = [&](Block* other) {
    if (!other || other->state != BlockState::Inactive) return false;
    --split_blocks;
    split_bytes -= count(other->size);
    other->node = pool.free.extract(pool.free.find(other));
    return true;
  };
  if (joined(block->next)) join(*block, *block->next);
  if (joined(block->previous)) {
    block = block->previous;
    join(*block, *block->next);
  }
  if (block->split()) {
    ++split_blocks;
    split_bytes += count(block->size);
  }
  s.inactive_split.change(pool.large(), split_blocks);
  s.inactive_split_bytes.change(pool.large(), split_bytes);
  pool.free.insert(std::move(block->node));
}

// The block takes over its neighbour. Neither is in the pool's set.
void CachingAllocator::join(Block& block, Block& next) noexcept {
  block.size += next.size;
  block.next = next.next;
  if (block.next) block.next->previous = &block;
  blocks_.erase(next.address);
}

// ---- the device ----

// On return, the pool has a free block that is large enough.
void CachingAllocator::ask_device(Lock& lock, Pool& pool, size_t size, size_t nbytes) {
  struct Asking {  // keeps the pool at its address
    explicit Asking(Pool& p) : pool(p) { ++pool.segments; }
    ~Asking() { --pool.segments; }
    Pool& pool;
  } const asking(pool);
  const size_t segment = segment_size(size);
  std::string refusal;
  if (add_segment(lock, pool, segment, refusal)) return;
  ++statistics_.num_alloc_retries;
  if (!capturing()) {
    {
      const Unlocked outside(lock);
      device_.synchronize();
    }
    ++statistics_.num_sync_all_streams;
    poll();
    if (find(pool, size) != pool.free.end()) return;
  }
  release_free(lock);
  if (add_segment(lock, pool, segment, refusal)) return;
  refuse(nbytes, refusal);
}

// False where the limit or the device refuses, with the reason.
bool CachingAllocator::add_segment(Lock& lock, Pool& pool, size_t size, std::string& refusal) {
  const size_t reserved = static_cast<size_t>(statistics_.reserved_bytes.all.current);
  if (reserved + requested_now_ + size > limit_) {
    refusal = str("the limit of ", readable_size(limit_), " refused, a fraction of ", fraction_,
                  " of its memory");
    return false;
  }
  struct Asking {
    Asking(size_t& sum, size_t by) : sum(sum), by(by) { sum += by; }
    ~Asking() { sum -= by; }
    size_t &sum, by;
  } const asking(requested_now_, size);
  void* data = nullptr;
  refusal = "the device refused";
  try {
    const Unlocked outside(lock);
    data = device_.allocate(size);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::OutOfMemory) throw;
    const std::string text = error.what();
    refusal += ": " + text.substr(0, text.find('\n'));
  }
  if (!data) return false;
  try {
    pool.free.insert(std::move(new_block(data, size, pool).node));
  } catch (...) {
    const Unlocked outside(lock);
    device_.deallocate(data, size);
    throw;
  }
  ++pool.segments;
  ++statistics_.num_device_alloc;
  statistics_.segment.change(pool.large(), 1);
  statistics_.reserved_bytes.change(pool.large(), count(size));
  return true;
}

// Forgets a free segment, which is in no set; returns its size.
size_t CachingAllocator::detach(Block& segment) noexcept {
  const size_t size = segment.size;
  Pool& pool = *segment.pool;
  --pool.segments;
  ++statistics_.num_device_free;
  statistics_.segment.change(pool.large(), -1);
  statistics_.reserved_bytes.change(pool.large(), -count(size));
  blocks_.erase(segment.address);
  return size;
}

void CachingAllocator::release_free(Lock& lock) {
  size_t most = 0;
  for (const auto& [key, pool] : pools_) most += pool.free.size();
  std::vector<std::pair<void*, size_t>> segments;
  segments.reserve(most);
  for (auto it = pools_.begin(); it != pools_.end();) {
    Pool& pool = it->second;
    const bool is_private = pool.id() != 0, reserved = private_pools_.count(pool.id()) > 0;
    for (auto free = pool.free.begin(); !reserved && free != pool.free.end();) {
      Block& block = **free;
      if (block.split()) {
        ++free;
        continue;
      }
      free = pool.free.erase(free);
      void* data = block.address;
      segments.emplace_back(data, detach(block));
    }
    it = is_private && !reserved && pool.segments == 0 ? pools_.erase(it) : std::next(it);
  }
  const Unlocked outside(lock);
  for (const auto& [data, size] : segments) device_.deallocate(data, size);
}

void CachingAllocator::refuse(size_t nbytes, const std::string& why) {
  const auto readable = [](int64_t bytes) { return readable_size(static_cast<size_t>(bytes)); };
  MemoryStatistics& s = statistics_;
  ++s.num_ooms;
  const int64_t held = s.allocated_bytes.all.current;
  const int64_t waiting = s.active_bytes.all.current - held;
  std::string text = str("expected to allocate ", readable_size(nbytes), " on ", device_.name(),
                         ", ", why, "\ntensors hold ", readable(held), ", the cache keeps ",
                         readable(s.reserved_bytes.all.current - held), " of freed memory");
  if (waiting > 0) text += str(", of which ", readable(waiting), " wait for other streams");
  const RawDevice::Memory memory = device_.memory();
  if (memory.total)
    text += str("\nthe device has ", readable_size(memory.free), " free of ",
                readable_size(memory.total));
  fail<ErrorKind::OutOfMemory>(text);
}

void CachingAllocator::empty_cache() {
  Lock lock(mutex_);
  if (!capturing()) poll();
  release_free(lock);
}

void CachingAllocator::set_fraction(double fraction) {
  check<ErrorKind::Value>(fraction >= 0 && fraction <= 1,
                          "expected a fraction of the memory between 0 and 1, got ", fraction);
  const size_t total = device_.memory().total;
  check<ErrorKind::Runtime>(total > 0, "expected a device that knows how much memory it has, got ",
                            device_.name());
  const Lock lock(mutex_);
  fraction_ = fraction;
  limit_ = static_cast<size_t>(fraction * static_cast<double>(total));
}

double CachingAllocator::fraction() const {
  const Lock lock(mutex_);
  return fraction_;
}

// ---- other streams ----

void CachingAllocator::record_stream(void* data, uint64_t stream) {
  if (reuse_ == Reuse::None) return;  // nothing is used again
  const Lock lock(mutex_);
  const auto it = blocks_.find(data);
  if (it == blocks_.end() || it->second.state != BlockState::Allocated) return;
  Block& block = it->second;
  if (block.pool->stream() == stream) return;
  for (const Use& use : block.uses)
    if (use.stream == stream) return;
  pending_.try_emplace(stream);
  if (spare_.empty()) {
    spare_.push_back({stream, nullptr, nullptr});
    try {
      spare_.back().event = device_.create_event();
    } catch (...) {
      spare_.pop_back();
      throw;
    }
  }
  Use& use = spare_.front();
  use.stream = stream;
  use.block = &block;
  block.uses.splice(block.uses.end(), spare_, spare_.begin());
}

// Records an event for each use of a freed block.
void CachingAllocator::record_uses(Block& block) noexcept {
  block.events = block.uses.size();
  try {
    while (!block.uses.empty()) {
      const Use& use = block.uses.front();
      device_.record_event(use.event, use.stream);
      Uses& queue = pending_.find(use.stream)->second;
      queue.splice(queue.end(), block.uses, block.uses.begin());
    }
  } catch (...) {
    // When the work will be done cannot be known: the block is never used again.
  }
}

void CachingAllocator::poll() {
  for (auto& [stream, queue] : pending_)
    while (!queue.empty() && device_.event_complete(queue.front().event)) passed(queue);
}

// The first event of the queue has passed.
void CachingAllocator::passed(Uses& queue) noexcept {
  Block& block = *queue.front().block;
  spare_.splice(spare_.end(), queue, queue.begin());
  if (--block.events > 0) return;
  --pending_blocks_;
  set_free(block);
}

void CachingAllocator::forget_stream(uint64_t stream) {
  const Lock lock(mutex_);
  for (auto& [address, block] : blocks_) {
    if (block.events > 0) continue;
    for (auto use = block.uses.begin(); use != block.uses.end();) {
      const auto next = std::next(use);
      if (use->stream == stream) spare_.splice(spare_.end(), block.uses, use);
      use = next;
    }
  }
  if (const auto queue = pending_.find(stream); queue != pending_.end()) {
    while (!queue->second.empty()) passed(queue->second);
    pending_.erase(queue);
  }
  // The stream's blocks can go to the default stream, because no queued work is left.
  for (const bool large : {false, true}) {
    const auto from = pools_.find({0, stream, large});
    if (stream == 0 || from == pools_.end() || from->second.segments == 0) continue;
    Pool& to = pools_.try_emplace({0, 0, large}, Pool{{0, 0, large}, {}}).first->second;
    for (auto& [address, block] : blocks_)
      if (block.pool == &from->second) block.pool = &to;
    to.free.merge(from->second.free);
    to.segments += std::exchange(from->second.segments, 0);
    pools_.erase(from);
  }
}

// ---- private pools ----

uint64_t CachingAllocator::begin_pool(uint64_t stream, uint64_t pool) {
  const Lock lock(mutex_);
  const auto capture = captures_.find(stream);
  check<ErrorKind::Runtime>(capture == captures_.end(),
                            "expected a stream without a pool of its own, got stream ", stream,
                            " of ", device_.name(), ", which has one");
  check<ErrorKind::Runtime>(pool == 0 || private_pools_.count(pool) > 0,
                            "expected a private pool of ", device_.name(), ", got ", pool);
  const uint64_t id = pool ? pool : last_pool_ + 1;
  private_pools_.try_emplace(id, 0);
  captures_.emplace(stream, id);
  any_capture_ = true;
  ++private_pools_[id];
  last_pool_ = std::max(last_pool_, id);
  return id;
}

void CachingAllocator::end_pool(uint64_t stream) {
  const Lock lock(mutex_);
  check<ErrorKind::Runtime>(captures_.erase(stream) > 0,
                            "expected a stream with a pool of its own, got stream ", stream, " of ",
                            device_.name(), ", which has none");
  any_capture_ = capturing();
  if (capturing()) return;
  while (deferred_) {
    Block& block = *deferred_;
    deferred_ = std::exchange(block.next_deferred, nullptr);
    record_uses(block);
    if (block.events > 0) continue;
    --pending_blocks_;  // its streams are destroyed
    set_free(block);
  }
}

void CachingAllocator::release_pool(uint64_t pool) {
  const Lock lock(mutex_);
  const auto it = private_pools_.find(pool);
  check<ErrorKind::Runtime>(it != private_pools_.end(), "expected a private pool of ",
                            device_.name(), ", got ", pool);
  for (const auto& [stream, captured] : captures_)
    check<ErrorKind::Runtime>(captured != pool || it->second > 1, "expected a private pool of ",
                              device_.name(), " to which nothing is added, got ", pool,
                              ", to which stream ", stream, " adds");
  if (--it->second == 0) private_pools_.erase(it);
}

// ---- what is told ----

MemoryStatistics CachingAllocator::statistics() const {
  const Lock lock(mutex_);
  return statistics_;
}

void CachingAllocator::reset_peaks() {
  const Lock lock(mutex_);
  statistics_.reset_peaks();
}

void CachingAllocator::reset_accumulated() {
  const Lock lock(mutex_);
  statistics_.reset_accumulated();
}

std::vector<SegmentSnapshot> CachingAllocator::snapshot() const {
  const Lock lock(mutex_);
  std::vector<SegmentSnapshot> segments;
  for (const auto& [address, first] : blocks_) {
    if (first.previous) continue;
    const Pool& pool = *first.pool;
    SegmentSnapshot& segment = segments.emplace_back(
        SegmentSnapshot{address, 0, pool.stream(), pool.id(), pool.large(), {}});
    for (const Block* b = &first; b; b = b->next) {
      segment.size += b->size;
      segment.blocks.push_back({b->address, b->size, b->requested, b->state});
    }
  }
  std::sort(segments.begin(), segments.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  return segments;
}

}  // namespace treadle
