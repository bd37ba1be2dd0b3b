// Folds of whole lines, in an order that depends on the sizes alone: the same bits each run. A
// thread, a warp or a block folds a line. Long lines are cut into chunks of a block each, and the
// folds of the chunks are folded.
//
//   struct Sum {
//     using State = double;
//     __device__ State load(int64_t line, int64_t j) const;
//     __device__ State join(State a, State b) const;       // associative and commutative
//     __device__ void store(int64_t line, State all) const;
//   };
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cuda/kernels/kernel.cuh"

namespace treadle::cuda {

constexpr int64_t kFoldedByBlock = 1 << 14;  // elements
// A thread processes a whole line if lines are this short, or if this many are side by side.
constexpr int64_t kShortFold = 32, kManyFolds = 1 << 14;
constexpr int kWarp = 32;
constexpr int64_t kFoldedByWarp = 1024, kWarpsOfBlock = kBlock / kWarp;

template <class F>
__global__ void fold_whole_lines(F f, int64_t lines, int64_t size) {
  for_each_element(lines, [=](int64_t line) {
    auto all = f.load(line, 0);
    for (int64_t j = 1; j < size; ++j) all = f.join(all, f.load(line, j));
    f.store(line, all);
  });
}

// The fold of load(begin) ... load(end - 1), a nonempty range, by a group of `width` threads, a
// warp or a block. The first thread receives the result.
template <int width, class State, class Load, class F>
__device__ inline State folded_by(int64_t begin, int64_t end, const F& f, Load load) {
  __shared__ State of_block[kBlock];
  State* const parts = of_block + threadIdx.x / width * width;
  const int64_t count = end - begin < width ? end - begin : width, thread = threadIdx.x % width;
  State mine{};
  if (thread < count) {
    mine = load(begin + thread);
    for (int64_t j = begin + thread + width; j < end; j += width) mine = f.join(mine, load(j));
    parts[thread] = mine;
  }
  for (int half = width / 2; half > 0; half /= 2) {
    if constexpr (width == kWarp)
      __syncwarp();
    else
      __syncthreads();
    if (thread < half && thread + half < count)
      parts[thread] = mine = f.join(mine, parts[thread + half]);
  }
  return mine;
}

// A warp for each line.
template <class F>
__global__ void fold_by_warps(F f, int64_t lines, int64_t size) {
  const int64_t line = blockIdx.x * kWarpsOfBlock + threadIdx.x / kWarp;
  if (line >= lines) return;
  const auto all =
      folded_by<kWarp, typename F::State>(0, size, f, [=](int64_t j) { return f.load(line, j); });
  if (threadIdx.x % kWarp == 0) f.store(line, all);
}

// A block for each chunk of each line. If a line is one chunk, the result is stored.
template <class F>
__global__ void fold_chunk(F f, int64_t size, int64_t chunks, typename F::State* folds) {
  using State = typename F::State;
  const int64_t block = blockIdx.x, line = block / chunks;
  const int64_t begin = (block - line * chunks) * kFoldedByBlock;
  const int64_t end = begin + kFoldedByBlock < size ? begin + kFoldedByBlock : size;
  const State all =
      folded_by<kBlock, State>(begin, end, f, [=](int64_t j) { return f.load(line, j); });
  if (threadIdx.x != 0) return;
  if (chunks > 1)
    folds[block] = all;
  else
    f.store(line, all);
}
template <class F>
__global__ void fold_chunks(F f, int64_t chunks, const typename F::State* folds) {
  using State = typename F::State;
  const int64_t line = blockIdx.x;
  const State all =
      folded_by<kBlock, State>(0, chunks, f, [=](int64_t k) { return folds[line * chunks + k]; });
  if (threadIdx.x == 0) f.store(line, all);
}

// `side_by_side`: neighbouring elements belong to different lines. A line has at least one element.
template <class F>
void fold_lines(F f, int64_t lines, int64_t size, bool side_by_side, const Place& place) {
  using State = typename F::State;
  if (lines == 0) return;
  if (size <= kShortFold || (side_by_side && lines >= kManyFolds)) {
    fold_whole_lines<<<blocks_for(lines), kBlock, 0, place.stream>>>(f, lines, size);
    return check_launched();
  }
  if (size <= kFoldedByWarp && lines >= kWarpsOfBlock) {
    fold_by_warps<<<block_each((lines + kWarpsOfBlock - 1) / kWarpsOfBlock), kBlock, 0,
                    place.stream>>>(f, lines, size);
    return check_launched();
  }
  const int64_t chunks = (size + kFoldedByBlock - 1) / kFoldedByBlock;
  Tensor memory;
  State* folds = nullptr;
  if (chunks > 1) {
    memory = empty_tensor({lines * chunks * static_cast<int64_t>(sizeof(State))}, ScalarType::UInt8,
                          place.where);
    folds = static_cast<State*>(memory.data());
  }
  fold_chunk<<<block_each(lines * chunks), kBlock, 0, place.stream>>>(f, size, chunks, folds);
  check_launched();
  if (chunks == 1) return;
  fold_chunks<<<block_each(lines), kBlock, 0, place.stream>>>(f, chunks,
                                                              static_cast<const State*>(folds));
  check_launched();
}

}  // namespace treadle::cuda
