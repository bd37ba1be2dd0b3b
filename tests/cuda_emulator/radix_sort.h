// For the emulator, what is used of CUB: a stable sort of pairs by some bits of their keys, which
// leaves the results in either of two buffers.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/cuda_emulator/device.h"

namespace cub {

template <class T>
struct DoubleBuffer {
  T* buffers[2];
  int selector = 0;
  DoubleBuffer(T* current, T* alternate) : buffers{current, alternate} {}
  T* Current() const { return buffers[selector]; }
  T* Alternate() const { return buffers[selector ^ 1]; }
};

struct DeviceRadixSort {
  template <class Key, class Value>
  static cudaError_t SortPairs(void* scratch, size_t& bytes, DoubleBuffer<Key>& keys,
                               DoubleBuffer<Value>& values, uint32_t n, int begin, int end,
                               cudaStream_t stream) {
    if (!scratch) {
      bytes = 1;
      return cudaSuccess;
    }
    Key *const from = keys.Current(), *const to = keys.Alternate();
    Value *const values_from = values.Current(), *const values_to = values.Alternate();
    treadle::cuda::emulator::queue(stream, [=] {
      const Key mask = (end - begin >= 64 ? ~Key{0} : (Key{1} << (end - begin)) - 1) << begin;
      std::vector<uint32_t> order(n);
      std::iota(order.begin(), order.end(), 0u);
      std::stable_sort(order.begin(), order.end(),
                       [=](uint32_t a, uint32_t b) { return (from[a] & mask) < (from[b] & mask); });
      for (uint32_t i = 0; i < n; ++i) {
        to[i] = from[order[i]];
        values_to[i] = values_from[order[i]];
      }
      std::fill(from, from + n, Key(0xCBCBCBCBu));  // it was written over
    });
    keys.selector ^= 1;
    values.selector ^= 1;
    return cudaSuccess;
  }
};

}  // namespace cub
