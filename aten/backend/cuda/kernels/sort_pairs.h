// SortedPairs: keys, each with the position of its element, and their stable sort. Sorting
// operators use it, and deterministic scatters use it to order writes to one element.
//
//   SortedPairs pairs("sort", n, place);
//   make_keys<<<...>>>(..., pairs.keys(), pairs.positions());
//   pairs.sort(32);    // keys below 2^32; keys() and positions() are in order from here on
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <string_view>

#include "core/tensor/tensor.h"

namespace treadle::cuda {

class SortedPairs {
 public:
  // RuntimeError if `n` is 2^32 or more.
  SortedPairs(std::string_view op, int64_t n, Device device, cudaStream_t stream);

  uint64_t* keys() const { return keys_; }
  uint32_t* positions() const { return positions_; }
  int64_t size() const { return n_; }

  // Sorts by the lowest `bits` of the keys. Equal ones keep their order.
  void sort(int bits);

 private:
  int64_t n_;
  cudaStream_t stream_;
  Tensor memory_;
  uint64_t *keys_, *other_keys_;
  uint32_t *positions_, *other_positions_;
};

// The number of bits of the numbers below `span`.
inline int bits_below(int64_t span) {
  return span > 1 ? 64 - std::countl_zero(static_cast<uint64_t>(span - 1)) : 0;
}

}  // namespace treadle::cuda
