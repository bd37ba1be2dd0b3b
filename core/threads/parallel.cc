// Parallel loops over OpenMP's threads.
//
// Chunk c of n runs on thread c * threads / n, so a piece of a tensor stays on the same core from
// one loop to the next.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/threads/parallel.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <exception>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/layers.h"

namespace treadle {
namespace {

thread_local constinit bool t_in_region __attribute__((tls_model("initial-exec"))) = false;

// Set when threads were started. OpenMP's pool does not survive a fork, so a child of such a
// process runs alone.
std::atomic<bool> g_pool_started{false};
std::atomic<bool> g_alone{false};

void after_fork_in_child() {
  if (!g_pool_started.load(std::memory_order_relaxed)) return;
  g_alone.store(true, std::memory_order_relaxed);
  omp_set_num_threads(1);  // for libraries that ask OpenMP themselves
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count = [] {
    pthread_atfork(nullptr, nullptr, &after_fork_in_child);
    return omp_get_max_threads() > 0 ? omp_get_max_threads() : 1;
  }();
  return count;
}

void* wait_for_start(void* start) {
  static_cast<std::latch*>(start)->wait();
  return nullptr;
}

// OpenMP ends the process where the system refuses it a thread. So as many are started here first;
// they end before this returns. A thread for each core is taken for granted.
void require_room_for(int threads) {
  static std::atomic<int> most = static_cast<int>(std::thread::hardware_concurrency());
  if (threads <= most.load(std::memory_order_relaxed)) return;
  std::latch start(1);
  std::vector<pthread_t> started;
  started.reserve(static_cast<size_t>(threads));
  int refused = 0;
  while (static_cast<int>(started.size()) < threads - 1 && refused == 0) {
    pthread_t thread;
    refused = pthread_create(&thread, nullptr, &wait_for_start, &start);
    if (refused == 0) started.push_back(thread);
  }
  start.count_down();
  for (const pthread_t thread : started) pthread_join(thread, nullptr);
  check<ErrorKind::Runtime>(refused == 0, OpName("set_num_threads"),
                            "expected a number of threads that the system has "
                            "room for, got ",
                            threads, "; it refused the one after ", started.size() + 1);
  most.store(threads, std::memory_order_relaxed);
}

class InRegion {
 public:
  InRegion() : saved_(t_in_region) { t_in_region = true; }
  ~InRegion() { t_in_region = saved_; }

 private:
  bool saved_;
};

// The exception of the smallest chunk number that threw.
class FirstError {
 public:
  bool before(int64_t chunk) const { return chunk_.load(std::memory_order_relaxed) < chunk; }
  void catch_current(int64_t chunk) {
    const std::lock_guard lock(mutex_);
    if (before(chunk)) return;
    chunk_.store(chunk, std::memory_order_relaxed);
    error_ = std::current_exception();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<int64_t> chunk_{INT64_MAX};
  std::exception_ptr error_;
  std::mutex mutex_;  // of one loop, during which no thread forks
};

}  // namespace

int num_threads() {
  return g_alone.load(std::memory_order_relaxed) ? 1
                                                 : thread_count().load(std::memory_order_relaxed);
}

void set_num_threads(int n) {
  check<ErrorKind::Value>(n >= 1, OpName("set_num_threads"), "expected at least 1 thread, got ", n);
  check<ErrorKind::Value>(n <= 4096, OpName("set_num_threads"),
                          "expected at most 4096 threads, got ", n);
  require_room_for(n);
  thread_count().store(n, std::memory_order_relaxed);
}

int64_t piece_length(int64_t n, int64_t grain) {
  constexpr int64_t kFew = 64;
  const int64_t pieces = (n + grain - 1) / grain;
  if (pieces > kFew) return grain;
  const int64_t equal = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(pieces)));
  const int64_t step = std::min<int64_t>(64, grain & -grain);
  return ((n + equal - 1) / equal + step - 1) / step * step;
}

bool in_parallel_region() { return t_in_region || omp_in_parallel(); }

namespace detail {

void run_chunks(int64_t chunks, ChunkFn fn, void* context) {
  int64_t threads = num_threads();
  if (threads > chunks) threads = chunks;
  if (threads <= 1 || in_parallel_region()) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) fn(context, chunk);
    return;
  }
  g_pool_started.store(true, std::memory_order_relaxed);
  FirstError error;
  const LayerState layers = treadle::layer_state();
  const AutogradMode mode = treadle::autograd_mode();
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    const InRegion region;
    const LayerState saved_layers = std::exchange(treadle::layer_state(), layers);
    const AutogradMode saved_mode = std::exchange(treadle::autograd_mode(), mode);
    // There may be fewer threads than requested.
    const int64_t count = omp_get_num_threads(), me = omp_get_thread_num();
    const int64_t base = chunks / count, extra = chunks % count;
    const int64_t begin = me * base + (me < extra ? me : extra);
    const int64_t end = begin + base + (me < extra ? 1 : 0);
    for (int64_t chunk = begin; chunk < end && !error.before(chunk); ++chunk) {
      try {
        fn(context, chunk);
      } catch (...) {
        error.catch_current(chunk);
        break;
      }
    }
    treadle::layer_state() = saved_layers;
    treadle::autograd_mode() = saved_mode;
  }
  error.rethrow();
}

}  // namespace detail

void run_single_threaded(void (*fn)(void*), void* context) {
  class OneThread {
   public:
    OneThread() : saved_(omp_get_max_threads()) { omp_set_num_threads(1); }
    ~OneThread() { omp_set_num_threads(saved_); }

   private:
    int saved_;
  };
  const OneThread one;
  fn(context);
}

}  // namespace treadle
