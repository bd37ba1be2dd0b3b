// The order in which threads share writes to single elements: a counting sort by the upper bits of
// the elements' numbers.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/cpu/deterministic_scatter.h"

#include <algorithm>

#include "core/threads/parallel.h"

namespace treadle::cpu {

SortedWrites sorted_writes(int64_t count, int64_t span, TargetOfWrite target, const void* context) {
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
      run_of[i] = static_cast<uint8_t>(target(context, i) >> shift);
      ++starts[p][run_of[i]];
    }
  });
  SortedWrites sorted;
  uint32_t at = 0;
  for (int64_t run = 0; run < kOrderedRuns; ++run) {
    sorted.runs[run] = at;
    for (auto& start : starts) {
      const uint32_t writes = start[run];
      start[run] = at;
      at += writes;
    }
  }
  sorted.runs[kOrderedRuns] = count;
  sorted.order.resize(count);
  parallel_chunks(pieces, [&](int64_t p) {
    for (int64_t i = p * piece; i < std::min(count, (p + 1) * piece); ++i)
      sorted.order[starts[p][run_of[i]]++] = static_cast<uint32_t>(i);
  });
  return sorted;
}

}  // namespace treadle::cpu
