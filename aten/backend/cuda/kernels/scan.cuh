// Running folds along lines, in an order that depends on the sizes alone: the same bits each run.
// Long lines are cut into chunks of a block each. The folds of the chunks are scanned, as lines
// themselves. Then each chunk starts from the fold of those before it.
//
//   struct RunningSum {
//     using State = double;
//     __device__ State load(int64_t line, int64_t j) const;
//     __device__ State join(State a, State b) const;              // associative; a comes before b
//     __device__ void store(int64_t line, int64_t j, State all) const;  // of the elements up to j
//   };
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cuda/kernels/kernel.cuh"

namespace treadle::cuda {

constexpr int64_t kScannedByThread = 4, kScanChunk = kBlock * kScannedByThread;
// A thread processes a whole line if lines are this short, or if this many are side by side.
constexpr int64_t kShortLine = 16, kManyLines = 1 << 14;

// The folds of chunks.
template <class F>
struct ScanChunks {
  using State = typename F::State;
  F f;
  State* folds;
  int64_t chunks;
  __device__ State load(int64_t line, int64_t j) const { return folds[line * chunks + j]; }
  __device__ State join(State a, State b) const { return f.join(a, b); }
  __device__ void store(int64_t line, int64_t j, State all) const {
    folds[line * chunks + j] = all;
  }
};

template <class F>
__global__ void scan_whole_lines(F f, int64_t lines, int64_t size) {
  for_each_element(lines, [=](int64_t line) {
    auto all = f.load(line, 0);
    f.store(line, 0, all);
    for (int64_t j = 1; j < size; ++j) {
      all = f.join(all, f.load(line, j));
      f.store(line, j, all);
    }
  });
}

// A block processes a chunk of a line. With folds_only it computes folds[block]. Otherwise, if
// there are several chunks, folds[block] already holds the fold of all chunks up to this one.
template <class F, bool folds_only>
__global__ void scan_chunk(F f, int64_t size, int64_t chunks, typename F::State* folds) {
  using State = typename F::State;
  __shared__ State parts[kBlock];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t block = blockIdx.x, line = block / chunks, chunk = block - line * chunks;
  const int64_t begin = chunk * kScanChunk + thread * kScannedByThread;
  const int64_t behind = (chunk + 1) * kScanChunk < size ? (chunk + 1) * kScanChunk : size;
  const int64_t end = begin + kScannedByThread < behind ? begin + kScannedByThread : behind;
  const bool any = begin < end;
  State mine{};
  if (any) {
    mine = f.load(line, begin);
    for (int64_t j = begin + 1; j < end; ++j) mine = f.join(mine, f.load(line, j));
    parts[thread] = mine;
  }
  for (int step = 1; step < kBlock; step *= 2) {
    __syncthreads();
    const bool joins = any && thread >= step;
    State left{};
    if (joins) left = parts[thread - step];
    __syncthreads();
    if (joins) {
      mine = f.join(left, mine);
      parts[thread] = mine;
    }
  }
  if constexpr (folds_only) {
    if (any && end == behind) folds[block] = mine;
    return;
  }
  __syncthreads();
  if (!any) return;
  bool started = chunk > 0;
  State all{};
  if (started) all = folds[block - 1];
  if (thread > 0) {
    all = started ? f.join(all, parts[thread - 1]) : parts[thread - 1];
    started = true;
  }
  for (int64_t j = begin; j < end; ++j) {
    const State next = f.load(line, j);
    all = started ? f.join(all, next) : next;
    started = true;
    f.store(line, j, all);
  }
}

template <class F>
constexpr bool scans_chunks = false;
template <class F>
constexpr bool scans_chunks<ScanChunks<F>> = true;

// `side_by_side`: neighbouring elements belong to different lines.
template <class F>
void scan_lines(F f, int64_t lines, int64_t size, bool side_by_side, const Place& place) {
  using State = typename F::State;
  if (lines == 0 || size == 0) return;
  if (size <= kShortLine || (side_by_side && lines >= kManyLines)) {
    scan_whole_lines<<<blocks_for(lines), kBlock, 0, place.stream>>>(f, lines, size);
    check_launched();
    return;
  }
  const int64_t chunks = (size + kScanChunk - 1) / kScanChunk;
  const auto blocks = block_each(lines * chunks);
  Tensor memory;
  State* folds = nullptr;
  if (chunks > 1) {
    memory = empty_tensor({lines * chunks * static_cast<int64_t>(sizeof(State))}, ScalarType::UInt8,
                          place.where);
    folds = static_cast<State*>(memory.data());
    scan_chunk<F, true><<<blocks, kBlock, 0, place.stream>>>(f, size, chunks, folds);
    check_launched();
    if constexpr (scans_chunks<F>)
      scan_lines(F{f.f, folds, chunks}, lines, chunks, false, place);
    else
      scan_lines(ScanChunks<F>{f, folds, chunks}, lines, chunks, false, place);
  }
  scan_chunk<F, false><<<blocks, kBlock, 0, place.stream>>>(f, size, chunks, folds);
  check_launched();
}

}  // namespace treadle::cuda
