// randperm: the order of random keys. The CPU's order differs, because it swaps elements one after
// another.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/sort_pairs.h"
#include "aten/ops/_randperm_.h"
#include "aten/ops/random/cuda/random_numbers.cuh"

namespace treadle::cuda {
namespace {

__global__ void draw_order_keys(RandomStart at, int64_t n, uint64_t* keys, uint32_t* positions) {
  for_each_counter<2>(at, n, [=](const uint32_t* words, int64_t first) {
    for (int k = 0; k < 2 && first + k < n; ++k) {
      keys[first + k] = word_pair(words, k);
      positions[first + k] = static_cast<uint32_t>(first + k);
    }
  });
}
template <class T>
__global__ void write_order(const uint32_t* positions, int64_t n, T* out) {
  for_each_element(
      n, [=](int64_t i) { out[i] = narrowed<T>(static_cast<Computed<T>>(positions[i])); });
}

template <class T>
void randperm_cuda(const Tensor& self, const Generator& generator) {
  const int64_t n = self.numel(), counters = blocks_of(n, 2);
  const auto at = reserve("randperm", self, generator, counters);
  if (n == 0) return;
  const Place place(self);
  SortedPairs pairs("randperm", n, place.where, place.stream);
  draw_order_keys<<<blocks_for(counters), kBlock, 0, place.stream>>>(at, n, pairs.keys(),
                                                                     pairs.positions());
  check_launched();
  pairs.sort(64);
  write_order<<<blocks_for(n), kBlock, 0, place.stream>>>(
      static_cast<const uint32_t*>(pairs.positions()), n, self.data_as<T>());
  check_launched();
}

const auto randperm_registered = register_cuda<aten::ops::_randperm_>(
    DeclaredTypes<aten::ops::_randperm_>(), []<class T>() { return &randperm_cuda<T>; },
    "randperm_cuda");

}  // namespace
}  // namespace treadle::cuda
