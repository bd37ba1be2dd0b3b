// Deterministic scatter without atomics: writes may target the same element, and give the same bits
// each run. Entries are sorted by target, stably, and those of one target are taken in the entries'
// order.
//
// A functor describes a write. An entry has `width` columns, and each column is a write of its own:
//
//   struct Sum {
//     using Value = float;
//     __device__ Value load(int64_t entry, int64_t column) const;
//     __device__ Value join(Value a, Value b) const;                 // for folds
//     // `count`: how many entries met
//     __device__ void store(int64_t place, int64_t column, Value all, int64_t count) const;
//   };
//
// A long run of entries is folded in pieces, and then over the pieces. A piece begins where the
// sorted position is a multiple of kPiece, so the order of additions depends only on the targets.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/backend/cuda/kernels/sort_pairs.h"

namespace treadle::cuda {

constexpr int64_t kPiece = 64;

// place(entry) is in [0, span), or negative to skip the entry.
template <class Places>
__global__ void number_entries(Places place, int64_t n, int64_t span, uint64_t* keys,
                               uint32_t* positions) {
  for_each_element(n, [=](int64_t i) {
    const int64_t at = place(i);
    keys[i] = static_cast<uint64_t>(at < 0 ? span : at);
    positions[i] = static_cast<uint32_t>(i);
  });
}
template <class Places>
SortedPairs sorted_entries(std::string_view op, Places place, int64_t n, int64_t span,
                           const Place& on) {
  SortedPairs pairs(op, n, on.where, on.stream);
  if (n == 0) return pairs;
  number_entries<<<blocks_for(n), kBlock, 0, on.stream>>>(place, n, span, pairs.keys(),
                                                          pairs.positions());
  check_launched();
  pairs.sort(bits_below(span + 1));
  return pairs;
}

// ---- each entry on its own: places are different, or what is written is the same ----

template <class Places, class F>
__global__ void scatter_each_kernel(Places place, int64_t n, int64_t width, F f) {
  for_each_element(n * width, [=](int64_t i) {
    const int64_t entry = i / width, column = i - entry * width, at = place(entry);
    if (at >= 0) f.store(at, column, f.load(entry, column), 1);
  });
}
template <class Places, class F>
void scatter_each(Places place, int64_t n, int64_t width, F f, const Place& on) {
  if (n * width == 0) return;
  scatter_each_kernel<<<blocks_for(n * width), kBlock, 0, on.stream>>>(place, n, width, f);
  check_launched();
}

// ---- the last of those that meet ----

template <class F>
__global__ void scatter_last_kernel(const uint64_t* keys, const uint32_t* positions, int64_t n,
                                    int64_t span, int64_t width, F f) {
  for_each_element(n * width, [=](int64_t i) {
    const int64_t p = i / width, column = i - p * width;
    const uint64_t key = keys[p];
    if (key >= static_cast<uint64_t>(span) || (p + 1 < n && keys[p + 1] == key)) return;
    f.store(static_cast<int64_t>(key), column, f.load(positions[p], column), 1);
  });
}
template <class F>
void scatter_last(const SortedPairs& pairs, int64_t span, int64_t width, F f, const Place& on) {
  const int64_t n = pairs.size();
  if (n * width == 0) return;
  scatter_last_kernel<<<blocks_for(n * width), kBlock, 0, on.stream>>>(
      pairs.keys(), pairs.positions(), n, span, width, f);
  check_launched();
}

// Writes each entry. If entries may `meet` (have one target), it writes the last of them.
template <class Places, class F>
void scatter_entries(std::string_view op, Places place, int64_t n, int64_t span, int64_t width, F f,
                     bool meet, const Place& on) {
  if (meet)
    scatter_last(sorted_entries(op, place, n, span, on), span, width, f, on);
  else
    scatter_each(place, n, width, f, on);
}

// ---- folds of those that meet ----

// The end of the run of `key` that contains p.
__device__ inline int64_t end_of_run(const uint64_t* keys, int64_t p, int64_t n, uint64_t key) {
  int64_t low = p + 1, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (keys[middle] == key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// parts[2 * piece][column]: for the run at the beginning of the piece; parts[2 * piece + 1]: for
// the run that begins inside the piece and continues after it. Other runs are stored.
template <class F>
__global__ void fold_pieces(const uint64_t* keys, const uint32_t* positions, int64_t n,
                            int64_t span, int64_t width, F f, typename F::Value* parts) {
  for_each_element(n * width, [=](int64_t i) {
    const int64_t first = i / width, column = i - first * width;
    const uint64_t key = keys[first];
    if (key >= static_cast<uint64_t>(span)) return;
    const bool begins = first == 0 || keys[first - 1] != key, at_piece = first % kPiece == 0;
    if (!begins && !at_piece) return;
    const int64_t piece = first / kPiece;
    const int64_t behind = (piece + 1) * kPiece < n ? (piece + 1) * kPiece : n;
    typename F::Value all = f.load(positions[first], column);
    int64_t last = first + 1;
    for (; last < behind && keys[last] == key; ++last)
      all = f.join(all, f.load(positions[last], column));
    if (begins && (last == n || keys[last] != key))
      f.store(static_cast<int64_t>(key), column, all, last - first);
    else
      parts[(2 * piece + (at_piece ? 0 : 1)) * width + column] = all;
  });
}
// For each piece, the run that begins in it and continues after it.
template <class F>
__global__ void join_pieces(const uint64_t* keys, int64_t n, int64_t pieces, int64_t span,
                            int64_t width, F f, const typename F::Value* parts) {
  for_each_element(pieces * width, [=](int64_t i) {
    const int64_t piece = i / width, column = i - piece * width;
    const int64_t begin = piece * kPiece, next = begin + kPiece;
    if (next >= n) return;
    const uint64_t key = keys[next];
    if (key >= static_cast<uint64_t>(span) || keys[next - 1] != key) return;
    if (piece > 0 && keys[begin - 1] == key) return;
    int64_t first = next - 1;
    while (first > begin && keys[first - 1] == key) --first;
    typename F::Value all = parts[(2 * piece + (first == begin ? 0 : 1)) * width + column];
    const int64_t last = end_of_run(keys, next, n, key);
    for (int64_t k = piece + 1; k * kPiece < last; ++k)
      all = f.join(all, parts[2 * k * width + column]);
    f.store(static_cast<int64_t>(key), column, all, last - first);
  });
}
template <class F>
void scatter_fold(const SortedPairs& pairs, int64_t span, int64_t width, F f, const Place& on) {
  using Value = typename F::Value;
  const int64_t n = pairs.size(), pieces = (n + kPiece - 1) / kPiece;
  if (n * width == 0) return;
  const Tensor memory = empty_tensor({2 * pieces * width * static_cast<int64_t>(sizeof(Value))},
                                     ScalarType::UInt8, on.where);
  auto* const parts = static_cast<Value*>(memory.data());
  fold_pieces<<<blocks_for(n * width), kBlock, 0, on.stream>>>(pairs.keys(), pairs.positions(), n,
                                                               span, width, f, parts);
  join_pieces<<<blocks_for(pieces * width), kBlock, 0, on.stream>>>(pairs.keys(), n, pieces, span,
                                                                    width, f, parts);
  check_launched();
}

}  // namespace treadle::cuda
