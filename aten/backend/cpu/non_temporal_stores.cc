// Non-temporal stores, as wide as the machine's vectors: a cache line in a single store is the
// fastest. Rows that stay in the caches are also copied in wide vectors where the machine has them,
// because most rows begin in the middle of a line.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/non_temporal_stores.h"

#include <immintrin.h>

#include <iterator>

#include "aten/backend/cpu/interleaved_pages.h"
#include "aten/backend/cpu/targets.h"

namespace treadle::cpu {
namespace {

// `lines` lines of 64 bytes, the first at the start of one.
using StreamLines = void(char* to, const char* from, int64_t lines);

void stream_by_16(char* to, const char* from, int64_t lines) {
  for (; lines > 0; --lines, to += 64, from += 64) {
    for (int k = 0; k < 64; k += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + k),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k)));
    }
  }
}
[[gnu::target("avx2")]] void stream_by_32(char* to, const char* from, int64_t lines) {
  for (; lines > 0; --lines, to += 64, from += 64) {
    for (int k = 0; k < 64; k += 32) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + k),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + k)));
    }
  }
}
[[gnu::target("avx512f")]] void stream_by_64(char* to, const char* from, int64_t lines) {
  for (; lines > 0; --lines, to += 64, from += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
}

[[gnu::target("avx512f")]] void copy_by_64(char* to, const char* from, int64_t bytes,
                                           RowAhead ahead) {
  const bool asks = ahead.to != 0 || ahead.from != 0;
  for (; bytes > 128; bytes -= 128, to += 128, from += 128) {
    if (asks) {
      for (int k = 0; k < 128; k += 64) {
        __builtin_prefetch(from + ahead.from + k);
        __builtin_prefetch(to + ahead.to + k, 1);
      }
    }
    const __m512i first = _mm512_loadu_si512(from), second = _mm512_loadu_si512(from + 64);
    _mm512_storeu_si512(to, first);
    _mm512_storeu_si512(to + 64, second);
  }
  // The rest, at most 128 bytes, and some bytes before it again.
  const __m512i first = _mm512_loadu_si512(from + bytes - 128);
  const __m512i second = _mm512_loadu_si512(from + bytes - 64);
  _mm512_storeu_si512(to + bytes - 128, first);
  _mm512_storeu_si512(to + bytes - 64, second);
}

constexpr StreamLines* kStreamLines[] = {&stream_by_16, &stream_by_32, &stream_by_64};
static_assert(std::size(kStreamLines) == simd::kTargets);

}  // namespace

void NonTemporalStores::stream(char* to, const char* from, int64_t bytes) {
  const int64_t head = until_line(to);
  std::memcpy(to, from, static_cast<size_t>(head));
  const int64_t lines = (bytes - head) / kLine, done = head + lines * kLine;
  StreamLines* const stream_lines = kStreamLines[simd::chosen_target];
  InterleavedPages turns(lines, InterleavedPages::kPieceBytes / kLine);
  do {
    const int64_t at = head + turns.first * kLine;
    stream_lines(to + at, from + at, turns.end - turns.first);
  } while (turns.next());
  std::memcpy(to + done, from + done, static_cast<size_t>(bytes - done));
}

void NonTemporalStores::copy_in_vectors(char* to, const char* from, int64_t bytes, RowAhead ahead) {
  if (simd::chosen_target < 2)
    std::memcpy(to, from, static_cast<size_t>(bytes));
  else
    copy_by_64(to, from, bytes, ahead);
}

void NonTemporalStores::fence() { _mm_sfence(); }

}  // namespace treadle::cpu
