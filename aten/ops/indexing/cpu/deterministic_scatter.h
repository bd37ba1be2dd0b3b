// Deterministic scatter: writes to single elements, many of which may target the same one. They run
// in parallel, with the result of running one after another.
//
//   deterministic_scatter(entries, out.numel(), [&](int64_t i) { return index[i]; },
//                  [&](int64_t i) { out[index[i]] += source[i]; });
//
// target(i) is called once per write, because the memory that it reads may change meanwhile.
//
// The writes are first sorted into runs of neighbouring elements, in which they keep their order.
// Then one thread takes each run. With few threads the writes would finish before the sort, so
// callers ask worth_sorting() and write by themselves.
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

// The writes in runs of neighbouring elements: run k is order[runs[k]] to order[runs[k + 1]].
struct SortedWrites {
  std::vector<uint32_t> order;
  std::array<int64_t, kOrderedRuns + 1> runs{};
};
using TargetOfWrite = int64_t (*)(const void* context, int64_t write);
SortedWrites sorted_writes(int64_t count, int64_t span, TargetOfWrite target, const void* context);

// target(i) in [0, span) is the element that write(i) writes. Only where worth_sorting().
template <class Target, class Write>
void deterministic_scatter(int64_t count, int64_t span, Target target, Write write) {
  const SortedWrites sorted = sorted_writes(
      count, span,
      [](const void* context, int64_t i) { return (*static_cast<const Target*>(context))(i); },
      &target);
  parallel_chunks(kOrderedRuns, [&](int64_t run) {
    for (int64_t k = sorted.runs[run]; k < sorted.runs[run + 1]; ++k)
      write(static_cast<int64_t>(sorted.order[k]));
  });
}

}  // namespace treadle::cpu
