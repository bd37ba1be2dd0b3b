// torch_parallel_for: the extension's loops on the library's threads.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/threads/parallel.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "stable_abi/boundary.h"

namespace treadle::stable_abi {
namespace {

// How many pieces a loop has at most. It does not depend on the number of threads, so neither do
// results that depend on the pieces.
constexpr int64_t kPieces = 64;

thread_local uint32_t t_index = 0;

// Numbers below the number of threads, one for each piece that is being computed. Extensions index
// memory of their own by them.
class Indices {
 public:
  explicit Indices(int count)
      : count_(static_cast<uint32_t>(count)), taken_(new std::atomic<bool>[count_] {}) {}
  uint32_t take() {
    for (uint32_t i = 0;; i = i + 1 < count_ ? i + 1 : 0) {
      if (!taken_[i].exchange(true, std::memory_order_acquire)) return i;
    }
  }
  void give_back(uint32_t index) { taken_[index].store(false, std::memory_order_release); }

 private:
  uint32_t count_;
  std::unique_ptr<std::atomic<bool>[]> taken_;
};

// The number of this thread while it computes a piece.
class Numbered {
 public:
  explicit Numbered(Indices& indices) : indices_(indices) { t_index = indices.take(); }
  ~Numbered() {
    indices_.give_back(t_index);
    t_index = 0;
  }
  Numbered(const Numbered&) = delete;
  Numbered& operator=(const Numbered&) = delete;

 private:
  Indices& indices_;
};

}  // namespace
}  // namespace treadle::stable_abi

using namespace treadle;              // NOLINT
using namespace treadle::stable_abi;  // NOLINT

AOTITorchError torch_parallel_for(int64_t begin, int64_t end, int64_t grain_size,
                                  ParallelFunc function, void* context) {
  return guarded([&] {
    given(function, "a function");
    check<ErrorKind::Value>(grain_size >= 0, "torch_parallel_for: expected grain_size >= 0, got ",
                            grain_size);
    if (begin >= end) return;
    int64_t count = 0;
    check<ErrorKind::Value>(!__builtin_sub_overflow(end, begin, &count),
                            "torch_parallel_for: expected fewer than 2^63 steps, got those from ",
                            begin, " to ", end);
    if (in_parallel_region() || count <= grain_size) {
      function(begin, end, context);
      return;
    }
    Indices indices(num_threads());
    const int64_t grain = std::max({int64_t{1}, grain_size, (count + kPieces - 1) / kPieces});
    parallel_for(count, grain, [&](int64_t from, int64_t to) {
      const Numbered numbered(indices);
      function(begin + from, begin + to, context);
    });
  });
}
AOTITorchError torch_get_thread_idx(uint32_t* result) {
  return guarded([&] { *result = t_index; });
}
AOTITorchError torch_get_num_threads(uint32_t* result) {
  return guarded([&] { *result = static_cast<uint32_t>(num_threads()); });
}
