// The elements of lines in order. All of them are sorted at once, by line and then by a key: an
// unsigned integer in the elements' order (aten/ops/sorting/cpu/sort_key.h).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/backend/cuda/kernels/lines.cuh"
#include "aten/backend/cuda/kernels/sort_pairs.h"
#include "aten/ops/sorting/cpu/sort_key.h"

namespace treadle::cuda {

template <class T>
__global__ void make_keys(const T* from, Lines lines, bool descending, int line_shift,
                          uint64_t* keys, uint32_t* positions) {
  for_each_element(lines.count * lines.size, [=](int64_t i) {
    const int64_t line = i / lines.size;
    const uint64_t key = cpu::ordered_key(from[lines.at(line, i - line * lines.size)], descending);
    keys[i] = line_shift < 64 ? key | static_cast<uint64_t>(line) << line_shift : key;
    positions[i] = static_cast<uint32_t>(i);
  });
}
template <class Positions>
__global__ void make_line_keys(Positions positions, int64_t n, int64_t size, uint64_t* keys) {
  for_each_element(n, [=](int64_t i) { keys[i] = static_cast<uint64_t>(positions[i] / size); });
}

// The positions of the pairs are `line * size + j`: lines in their order, and within them the
// elements, stably, NaN last. descending: the reverse order, with equal elements still in their own
// order.
template <class T>
SortedPairs sorted_lines(std::string_view op, const T* from, const Lines& lines, bool descending,
                         const Place& place) {
  const int64_t n = lines.count * lines.size;
  SortedPairs pairs(op, n, place.where, place.stream);
  if (n == 0) return pairs;
  constexpr int kBits = 8 * static_cast<int>(sizeof(T));
  const int line_bits = bits_below(lines.count);
  const bool at_once = kBits + line_bits <= 64;
  make_keys<<<blocks_for(n), kBlock, 0, place.stream>>>(
      from, lines, descending, at_once ? kBits : 64, pairs.keys(), pairs.positions());
  check_launched();
  pairs.sort(at_once ? kBits + line_bits : kBits);
  if (at_once) return pairs;
  make_line_keys<<<blocks_for(n), kBlock, 0, place.stream>>>(
      static_cast<const uint32_t*>(pairs.positions()), n, lines.size, pairs.keys());
  check_launched();
  pairs.sort(line_bits);
  return pairs;
}

// The first `kept` elements of each line in order, and their positions; `indices` may be null.
template <class T>
__global__ void write_sorted(const uint32_t* positions, const T* from, Lines lines, int64_t kept,
                             T* values, int64_t* indices) {
  const Lines results{lines.count, kept, lines.inner};
  for_each_element(lines.count * kept, [=](int64_t i) {
    const int64_t line = i / kept, j = i - line * kept;
    const int64_t index = positions[line * lines.size + j] - line * lines.size;
    const int64_t to = results.at(line, j);
    values[to] = from[lines.at(line, index)];
    if (indices) indices[to] = index;
  });
}
template <class T>
void put_sorted(const SortedPairs& pairs, const T* from, const Lines& lines, int64_t kept,
                const Tensor& values, int64_t* indices, const Place& place) {
  write_sorted<<<blocks_for(lines.count * kept), kBlock, 0, place.stream>>>(
      static_cast<const uint32_t*>(pairs.positions()), from, lines, kept, values.data_as<T>(),
      indices);
  check_launched();
}

}  // namespace treadle::cuda
