// StreamedWrites: the result of a call, written past the caches where it is large.
//
//   const StreamedWrites writes(out.nbytes());
//   parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
//     for (int64_t i = begin; i < end; ++i) writes.copy(to(i), from(i), width);
//     writes.finish();
//   });
//
// An ordinary store to memory that no cache holds reads its line first. A result that will have
// left the caches before somebody reads it does not need that: a copy then moves two bytes where it
// moved three.
#pragma once

#include <emmintrin.h>

#include <cstdint>
#include <cstring>

namespace treadle::cpu {

class StreamedWrites {
 public:
  // `total` is how many bytes the call writes.
  explicit StreamedWrites(int64_t total) : on_(total >= kLarge) {}

  // The two do not overlap.
  void copy(void* to, const void* from, int64_t bytes) const {
    if (on_ && bytes >= 4 * kLine)
      stream(static_cast<char*>(to), static_cast<const char*>(from), bytes);
    else
      std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  // Where a thread has written its part: what it does next is seen by others after these writes.
  void finish() const {
    if (on_) _mm_sfence();
  }

 private:
  static constexpr int64_t kLarge = int64_t{8} << 20;  // of the order of a core's share of caches
  static constexpr int64_t kLine = 64;

  static void stream(char* to, const char* from, int64_t bytes) {
    const int64_t head = -reinterpret_cast<intptr_t>(to) & (kLine - 1);
    std::memcpy(to, from, static_cast<size_t>(head));
    int64_t at = head;
    for (; at + kLine <= bytes; at += kLine) {
      __m128i line[4];
      std::memcpy(line, from + at, kLine);
      for (int i = 0; i < 4; ++i)
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + at) + i, line[i]);
    }
    std::memcpy(to + at, from + at, static_cast<size_t>(bytes - at));
  }

  bool on_;
};

}  // namespace treadle::cpu
