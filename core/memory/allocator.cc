// The CPU's allocator.
//
// Small blocks are those of small_blocks.h. Large ones come from the system page by page. The first
// touch of a fresh page costs more than most operators spend on it. So freed pages are kept for the
// next requests, which may take a part of them.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/memory/allocator.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <new>
#include <vector>

#include "core/base/error.h"
#include "core/base/fork_safe_mutex.h"
#include "core/base/small_blocks.h"

namespace treadle {
namespace {

constexpr size_t kSmall = 1024;             // up to here an alignment of 16 will do
constexpr size_t kLarge = size_t{1} << 17;  // from here on, whole pages of the system
constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kUsePages = false;                // so that every block has its red zones
constexpr size_t kMaxRequest = size_t{1} << 39;  // its malloc ends the program above 2^40
#else
constexpr bool kUsePages = true;
constexpr size_t kMaxRequest = size_t{1} << 62;
#endif

// ---- statistics ---------------------------------------------------------------------------------

// Counted per thread with plain stores, and added up now and then: an atomic addition would cost as
// much as malloc.
struct GlobalCounts {
  std::atomic<int64_t> current{0}, peak{0}, allocations{0}, frees{0};

  void raise_peak(int64_t value) {
    int64_t seen = peak.load(std::memory_order_relaxed);
    while (value > seen && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
};
constinit GlobalCounts g_counts;

struct ThreadCounts {
  std::atomic<int64_t> current{0}, peak{0}, allocations{0},
      frees{0};          // since the last flush; written by one thread
  ThreadMemory flushed;  // the sums of `current` and `allocations` at the flushes
  enum : uint8_t { kNew, kListed, kGone } state = kNew;

  static void plain_add(std::atomic<int64_t>& counter, int64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  void flush() {
    flushed.net_bytes += current.load(std::memory_order_relaxed);
    flushed.allocations += allocations.load(std::memory_order_relaxed);
    const int64_t before = g_counts.current.fetch_add(current.load(std::memory_order_relaxed),
                                                      std::memory_order_relaxed);
    g_counts.raise_peak(before + peak.load(std::memory_order_relaxed));
    g_counts.allocations.fetch_add(allocations.load(std::memory_order_relaxed),
                                   std::memory_order_relaxed);
    g_counts.frees.fetch_add(frees.load(std::memory_order_relaxed), std::memory_order_relaxed);
    for (auto* counter : {&current, &peak, &allocations, &frees})
      counter->store(0, std::memory_order_relaxed);
  }
};
thread_local constinit ThreadCounts t_counts __attribute__((tls_model("initial-exec")));

// The threads whose counts are not flushed. Never destroyed: threads may end after it would be.
struct ThreadList {
  ForkSafeMutex mutex;
  std::vector<ThreadCounts*> threads;
};
ThreadList& thread_list() {
  static auto* list = new ThreadList;
  return *list;
}

// Takes a thread's counts off the list when the thread ends.
struct ThreadEnd {
  bool listed = false;
  ~ThreadEnd() {
    if (!listed) return;
    ThreadList& list = thread_list();
    const std::lock_guard lock(list.mutex);
    t_counts.flush();
    t_counts.state = ThreadCounts::kGone;
    std::erase(list.threads, &t_counts);
  }
};
thread_local ThreadEnd t_end;

[[gnu::noinline]] void first_count_of_thread() {
  ThreadList& list = thread_list();
  const std::lock_guard lock(list.mutex);
  list.threads.push_back(&t_counts);
  t_counts.state = ThreadCounts::kListed;
  t_end.listed = true;
}

inline void count(int64_t bytes) {
  constexpr int64_t kFlushAt = int64_t{1} << 16;
  ThreadCounts& counts = t_counts;
  if (counts.state == ThreadCounts::kNew) [[unlikely]]
    first_count_of_thread();
  const int64_t now = counts.current.load(std::memory_order_relaxed) + bytes;
  counts.current.store(now, std::memory_order_relaxed);
  if (bytes >= 0) {
    ThreadCounts::plain_add(counts.allocations, 1);
    if (now > counts.peak.load(std::memory_order_relaxed))
      counts.peak.store(now, std::memory_order_relaxed);
  } else {
    ThreadCounts::plain_add(counts.frees, 1);
  }
  if (now > kFlushAt || now < -kFlushAt || counts.state == ThreadCounts::kGone) [[unlikely]]
    counts.flush();
}

// ---- large blocks -------------------------------------------------------------------------------

// Rounds up to an eighth of the power of two below, so that a class wastes at most an eighth.
size_t size_class(size_t nbytes) {
  const size_t step = std::bit_floor(nbytes) / 8;
  return (nbytes + step - 1) / step * step;
}

// Ranges of pages that were freed, the newest last. Neighbours are one range. The pages kept and
// those in use are together at most an eighth more than were once in use at the same time. With no
// more room than that, keeping pages hardly raises the peak of a program's memory. With less, a
// program that does the same in each step, but for whose requests the ranges are too narrow, gives
// pages back and takes new ones in each step.
class KeptPages {
 public:
  KeptPages() {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
    const size_t memory =
        pages > 0 && page > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(page) : 0;
    limit_ = std::min(memory / 16, size_t{512} << 20);
  }

  // From the smallest range that has room. Null where there is none: the caller maps new pages, and
  // says so by `mapped`.
  void* take(size_t size) {
    Evicted evicted;
    const std::lock_guard lock(mutex_);
    size_t best = count_;
    for (size_t i = count_; i-- > 0;) {
      if (ranges_[i].size < size || (best < count_ && ranges_[i].size >= ranges_[best].size))
        continue;
      best = i;
      if (ranges_[i].size == size) break;
    }
    if (best == count_) {
      const size_t allowed = std::max(most_used_ + most_used_ / 8, used_ + size);
      while (count_ > 0 && used_ + size + kept_ > allowed) evicted.add(remove(0));
      return nullptr;
    }
    used_ += size;
    Range& range = ranges_[best];
    char* data = range.begin;
    if (range.size == size) {
      remove(best);
    } else {
      // The end that is further from the newest block: when that one is freed, one wide range is
      // left and not two narrow ones.
      const bool above = std::less<>{}(newest_, data);
      range.size -= size;
      if (above)
        data += range.size;
      else
        range.begin += size;
      kept_ -= size;
    }
    newest_ = data;
    return data;
  }

  // New pages are in use. A request that the system refused does not count as use.
  void mapped(size_t size) noexcept {
    const std::lock_guard lock(mutex_);
    used_ += size;
    most_used_ = std::max(most_used_, used_);
  }

  void give(void* data, size_t size) noexcept {
    Evicted evicted;
    const std::lock_guard lock(mutex_);
    used_ -= size;
    Range range{static_cast<char*>(data), size};
    for (size_t i = count_; i-- > 0;) {
      const Range& other = ranges_[i];
      if (other.begin + other.size == range.begin) {
        range = {other.begin, other.size + range.size};
        remove(i);
      } else if (range.begin + range.size == other.begin) {
        range.size += other.size;
        remove(i);
      }
    }
    while (count_ > 0 && (count_ == kMaxRanges || kept_ + range.size > limit_))
      evicted.add(remove(0));
    if (range.size > limit_) {
      evicted.add(range);
      return;
    }
    ranges_[count_++] = range;
    kept_ += range.size;
  }

  // These pages have another owner from now on.
  void forget(size_t size) noexcept {
    const std::lock_guard lock(mutex_);
    used_ -= size;
  }

  bool release_all() {
    Evicted evicted;
    const std::lock_guard lock(mutex_);
    const bool any = count_ > 0;
    while (count_ > 0) evicted.add(remove(count_ - 1));
    return any;
  }

 private:
  static constexpr size_t kMaxRanges = 64;
  struct Range {
    char* begin;
    size_t size;
  };
  // Goes back to the system when the lock is released.
  class Evicted {
   public:
    void add(Range range) { ranges_[count_++] = range; }
    ~Evicted() {
      for (size_t i = 0; i < count_; ++i) munmap(ranges_[i].begin, ranges_[i].size);
    }

   private:
    std::array<Range, kMaxRanges + 1> ranges_;
    size_t count_ = 0;
  };

  Range remove(size_t i) {
    const Range removed = ranges_[i];
    kept_ -= removed.size;
    std::copy(ranges_.begin() + i + 1, ranges_.begin() + count_, ranges_.begin() + i);
    --count_;
    return removed;
  }

  ForkSafeMutex mutex_;
  std::array<Range, kMaxRanges> ranges_;
  size_t count_ = 0;
  size_t kept_ = 0, used_ = 0, most_used_ = 0;  // bytes
  const char* newest_ = nullptr;                // the block that was taken last
  size_t limit_;
};

KeptPages& kept_pages() {
  static auto* kept = new KeptPages;
  return *kept;
}

// A child has none of the other threads, so their counts are added up there.
void survive_forks() {
  pthread_atfork(nullptr, nullptr, [] {
    std::erase_if(thread_list().threads, [](ThreadCounts* thread) {
      if (thread == &t_counts) return false;
      thread->flush();
      return true;
    });
  });
}

void* map_pages(size_t size) {
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  if (size >= 2 * kHugePage)
    madvise(data, size, MADV_HUGEPAGE);  // a hint; if it is refused, pages are small
  return data;
}

// Blocks below kLarge come from malloc, which gives the top of its heap back to the system whenever
// 128 KiB of it are free, and gets it back page by page: at each step of a training. It keeps twice
// as much as the largest block of whole pages that it ever freed (mallopt(3), M_TRIM_THRESHOLD).
void keep_top_of_heap() {
  void* volatile block = std::malloc(size_t{4} << 20);  // volatile: the pair would be left out
  std::free(block);
}

// ---- the allocator ------------------------------------------------------------------------------

class CpuAllocator final : public Allocator {
 public:
  void* allocate(size_t nbytes, Device) override {
    if (nbytes == 0) return nullptr;
    void* data = nullptr;
    if (nbytes <= kSmall) [[likely]] {
      data = allocate_small(nbytes);
    } else if (kUsePages && nbytes >= kLarge) {
      data = nbytes < kMaxRequest ? allocate_large(size_class(nbytes)) : nullptr;
    } else {
      data = nbytes < kMaxRequest ? allocate_aligned(nbytes) : nullptr;
    }
    if (!data) [[unlikely]] {
      fail<ErrorKind::OutOfMemory>("expected to allocate ", readable_size(nbytes),
                                   " on cpu, the system refused");
    }
    count(static_cast<int64_t>(nbytes));
    return data;
  }

  void deallocate(void* data, size_t nbytes, Device) noexcept override {
    if (nbytes == 0) return;
    count(-static_cast<int64_t>(nbytes));
    if (nbytes <= kSmall) [[likely]] {
      give_small_block(data, nbytes);
    } else if (kUsePages && nbytes >= kLarge) {
      kept_pages().give(data, size_class(nbytes));
    } else {
      std::free(static_cast<void**>(data)[-1]);
    }
  }

 private:
  static void* allocate_small(size_t size) {
    try {
      return take_small_block(size);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  static void* allocate_large(size_t size) {
    KeptPages& kept = kept_pages();
    if (void* data = kept.take(size)) return data;
    void* data = map_pages(size);
    if (!data && kept.release_all()) data = map_pages(size);
    if (data) kept.mapped(size);
    return data;
  }

  // malloc's own aligned form skips its per-thread cache. The word before the block holds malloc's
  // pointer.
  static void* allocate_aligned(size_t nbytes) {
    void* base = std::malloc(nbytes + kAlignment + sizeof(void*));
    if (!base) return nullptr;
    const auto address = reinterpret_cast<uintptr_t>(base) + sizeof(void*);
    void* data = reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
    static_cast<void**>(data)[-1] = base;
    return data;
  }
};

std::array<std::atomic<Allocator*>, kMaxDeviceTypes> g_allocators{};

}  // namespace

std::string readable_size(size_t nbytes) {
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (nbytes < 1024) return str(nbytes, " bytes");
  double value = static_cast<double>(nbytes);
  int unit = 0;
  for (; value >= 1024 && unit < 6; ++unit) value /= 1024;
  return str(static_cast<int64_t>(value), ".", static_cast<int64_t>(value * 10) % 10, " ",
             kUnits[unit]);
}

Allocator& cpu_allocator() {
  // Never destroyed, because storages may outlive everything else.
  static Allocator* allocator = [] {
    survive_forks();
    keep_top_of_heap();
    return new CpuAllocator;
  }();
  return *allocator;
}

size_t surrender_pages(void* data, size_t nbytes) noexcept {
  if (!data || !kUsePages || nbytes < kLarge) return 0;
  count(-static_cast<int64_t>(nbytes));
  kept_pages().forget(size_class(nbytes));
  return size_class(nbytes);
}

Allocator& allocator_for(DeviceType type) {
  if (type == DeviceType::CPU) return cpu_allocator();
  Allocator* allocator = g_allocators[static_cast<size_t>(type)].load(std::memory_order_acquire);
  check<ErrorKind::Runtime>(allocator != nullptr, "expected a device that has memory, got ",
                            name_of(type), ", for which no backend is loaded");
  return *allocator;
}

void register_allocator(DeviceType type, Allocator* allocator) {
  check<ErrorKind::Value>(type != DeviceType::CPU && type != DeviceType::Meta,
                          "expected a device other than ", name_of(type),
                          " to register an allocator for");
  g_allocators[static_cast<size_t>(type)].store(allocator, std::memory_order_release);
}

ThreadMemory thread_memory() {
  return {t_counts.flushed.net_bytes + t_counts.current.load(std::memory_order_relaxed),
          t_counts.flushed.allocations + t_counts.allocations.load(std::memory_order_relaxed)};
}

MemoryStats cpu_memory_stats() {
  ThreadList& list = thread_list();
  const std::lock_guard lock(list.mutex);
  MemoryStats stats;
  stats.current_bytes = g_counts.current.load(std::memory_order_relaxed);
  stats.allocations = g_counts.allocations.load(std::memory_order_relaxed);
  stats.frees = g_counts.frees.load(std::memory_order_relaxed);
  int64_t peak = stats.current_bytes;
  for (const ThreadCounts* thread : list.threads) {
    peak = std::max(peak, stats.current_bytes + thread->peak.load(std::memory_order_relaxed));
    stats.current_bytes += thread->current.load(std::memory_order_relaxed);
    stats.allocations += thread->allocations.load(std::memory_order_relaxed);
    stats.frees += thread->frees.load(std::memory_order_relaxed);
  }
  g_counts.raise_peak(std::max(peak, stats.current_bytes));
  stats.peak_bytes = g_counts.peak.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace treadle
