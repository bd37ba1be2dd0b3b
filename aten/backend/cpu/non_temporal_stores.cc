// Non-temporal stores, as wide as the machine's vectors: a cache line in a single store is the
// fastest. Rows that stay in the caches are also copied in wide vectors where the machine has them,
// because most rows begin in the middle of a line.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/backend/cpu/non_temporal_stores.cc"
#include "aten/backend/cpu/foreach_target.h"

#include "aten/backend/cpu/interleaved_pages.h"
#include "aten/backend/cpu/non_temporal_stores.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Bytes = hn::CappedTag<uint8_t, 64>;

// `lines` lines of 64 bytes, the first at the start of one.
void stream_lines(char* to, const char* from, int64_t lines) {
  const Bytes d;
  auto* target = reinterpret_cast<uint8_t*>(to);
  const auto* source = reinterpret_cast<const uint8_t*>(from);
  for (; lines > 0; --lines, target += 64, source += 64) {
    for (size_t k = 0; k < 64; k += hn::Lanes(d))
      hn::Stream(hn::LoadU(d, source + k), d, target + k);
  }
}

// At least 128 bytes.
void copy_in_lines(char* to, const char* from, int64_t bytes, cpu::RowAhead ahead) {
  if constexpr (HWY_LANES(uint8_t) < 64) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  const Bytes d;
  const auto load = [&](int64_t at) HWY_ATTR {
    return hn::LoadU(d, reinterpret_cast<const uint8_t*>(from) + at);
  };
  const auto store = [&](hn::Vec<Bytes> line, int64_t at)
                         HWY_ATTR { hn::StoreU(line, d, reinterpret_cast<uint8_t*>(to) + at); };
  const bool asks = ahead.to != 0 || ahead.from != 0;
  for (; bytes > 128; bytes -= 128, to += 128, from += 128) {
    if (asks) {
      for (int k = 0; k < 128; k += 64) {
        __builtin_prefetch(from + ahead.from + k);
        __builtin_prefetch(to + ahead.to + k, 1);
      }
    }
    const auto first = load(0), second = load(64);
    store(first, 0);
    store(second, 64);
  }
  // The rest, at most 128 bytes, and some bytes before it again.
  const auto first = load(bytes - 128), second = load(bytes - 64);
  store(first, bytes - 128);
  store(second, bytes - 64);
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(stream_lines);
HWY_EXPORT(copy_in_lines);

}  // namespace treadle::simd

namespace treadle::cpu {

void NonTemporalStores::stream(char* to, const char* from, int64_t bytes) {
  using namespace simd;
  const int64_t head = until_line(to);
  std::memcpy(to, from, static_cast<size_t>(head));
  const int64_t lines = (bytes - head) / kLine, done = head + lines * kLine;
  const auto copy_lines = HWY_DYNAMIC_DISPATCH(stream_lines);
  InterleavedPages turns(lines, InterleavedPages::kPieceBytes / kLine);
  do {
    const int64_t at = head + turns.first * kLine;
    copy_lines(to + at, from + at, turns.end - turns.first);
  } while (turns.next());
  std::memcpy(to + done, from + done, static_cast<size_t>(bytes - done));
}

void NonTemporalStores::copy_in_vectors(char* to, const char* from, int64_t bytes, RowAhead ahead) {
  using namespace simd;
  HWY_DYNAMIC_DISPATCH(copy_in_lines)(to, from, bytes, ahead);
}

void NonTemporalStores::fence() { hwy::FlushStream(); }

}  // namespace treadle::cpu
#endif  // HWY_ONCE
