// Deterministic scatter: writes to single elements, many of which may target the same one. They run
// in parallel, with the result of running one after another.
//
//   deterministic_scatter(entries, out.numel(), [&](int64_t i) { return index[i]; },
//                  [&](int64_t i) { out[index[i]] += source[i]; });
//
// target(i) is called once per write, because the memory that it reads may change meanwhile.
//
// With many threads the writes are first sorted into runs of neighbouring elements, in which they
// keep their order. Then one thread takes each run. With few threads the writes would finish before
// the sort.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "aten/backend/cpu/dim_slices.h"

namespace treadle::cpu {

inline constexpr int64_t kOrderedRuns = 64;
inline constexpr int kThreadsToSort = 8;

// Whether this number of writes to elements in [0, span) is faster with a sort first.
inline bool worth_sorting(int64_t count, int64_t span) {
  return num_threads() >= kThreadsToSort && count >= 4 * kGrain && count <= UINT32_MAX &&
         span >= kOrderedRuns;
}

// target(i) in [0, span) is the element that write(i) writes.
template <class Target, class Write>
void deterministic_scatter(int64_t count, int64_t span, Target target, Write write) {
  if (!worth_sorting(count, span)) {
    for (int64_t i = 0; i < count; ++i) write(i);
    return;
  }
  int shift = 0;
  while ((span - 1) >> shift >= kOrderedRuns) ++shift;
  const int64_t piece = std::max<int64_t>(kGrain, (count + 63) / 64);
  const int64_t pieces = (count + piece - 1) / piece;
  std::vector<uint8_t> run_of(count);
  // The number of a piece's writes to each run; afterwards the position of the first of them in
  // `order`.
  std::vector<std::array<uint32_t, kOrderedRuns>> starts(pieces);
  parallel_chunks(pieces, [&](int64_t p) {
    starts[p].fill(0);
    for (int64_t i = p * piece; i < std::min(count, (p + 1) * piece); ++i) {
      run_of[i] = static_cast<uint8_t>(target(i) >> shift);
      ++starts[p][run_of[i]];
    }
  });
  std::array<int64_t, kOrderedRuns + 1> runs{};
  uint32_t at = 0;
  for (int64_t run = 0; run < kOrderedRuns; ++run) {
    runs[run] = at;
    for (auto& start : starts) {
      const uint32_t writes = start[run];
      start[run] = at;
      at += writes;
    }
  }
  runs[kOrderedRuns] = count;
  std::vector<uint32_t> order(count);
  parallel_chunks(pieces, [&](int64_t p) {
    for (int64_t i = p * piece; i < std::min(count, (p + 1) * piece); ++i)
      order[starts[p][run_of[i]]++] = static_cast<uint32_t>(i);
  });
  parallel_chunks(kOrderedRuns, [&](int64_t run) {
    for (int64_t k = runs[run]; k < runs[run + 1]; ++k) write(static_cast<int64_t>(order[k]));
  });
}

}  // namespace treadle::cpu
