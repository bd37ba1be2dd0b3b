// NonTemporalStores: writes a call's result with non-temporal stores where the result is large.
//
//   const NonTemporalStores writes(out.nbytes());
//   parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
//     for (int64_t i = begin; i < end; ++i) writes.copy(to(i), from(i), width);
//     writes.finish();
//   });
//
// An ordinary store to uncached memory reads the line first. A result that leaves the caches before
// it is read does not need that read. A copy then moves two bytes where it moved three.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

namespace treadle::cpu {

// The offset in bytes of the row that is copied next but one. It is prefetched, because memory has
// a long latency.
struct RowAhead {
  int64_t to = 0, from = 0;
};

class NonTemporalStores {
 public:
  static constexpr int64_t kLine = 64;

  // The number of bytes before the first cache line that begins at `to` or after it.
  static int64_t until_line(const void* to) {
    return -reinterpret_cast<intptr_t>(to) & (kLine - 1);
  }

  // `total` is the number of bytes that the call writes.
  explicit NonTemporalStores(int64_t total) : on_(total >= kLarge) {}

  // Whether ordinary stores would be slower.
  bool on() const { return on_; }

  // The two ranges must not overlap.
  void copy(void* to, const void* from, int64_t bytes) const {
    if (on_ && bytes >= kShortest)
      stream(static_cast<char*>(to), static_cast<const char*>(from), bytes);
    else
      copy_row(to, from, bytes);
  }

  // Copies by ordinary stores. The two ranges must not overlap.
  static void copy_row(void* to, const void* from, int64_t bytes, RowAhead ahead = {}) {
    if (bytes >= kShortest && bytes <= kLongest)
      copy_in_vectors(static_cast<char*>(to), static_cast<const char*>(from), bytes, ahead);
    else
      std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  // To be called when a thread has written its part. Its later writes become visible after these.
  void finish() const {
    if (on_) fence();
  }

 private:
  static constexpr int64_t kLarge = int64_t{8} << 20;  // of the order of a core's share of caches

  static constexpr int64_t kShortest = 4 * kLine;  // shorter ones do not repay the setup
  static constexpr int64_t kLongest = 64 << 10;    // memcpy knows more of long ones

  static void stream(char* to, const char* from, int64_t bytes);
  static void copy_in_vectors(char* to, const char* from, int64_t bytes, RowAhead ahead);
  static void fence();

  bool on_;
};

}  // namespace treadle::cpu
