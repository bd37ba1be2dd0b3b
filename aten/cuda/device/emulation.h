// A block of threads on the host, for tests of the loops of generated kernels: what the compiler
// of kernels has built in, by threads of the host and a barrier.
#pragma once

#include <math.h>

#include <barrier>
#include <complex>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#define __shared__ static
#define __forceinline__ inline

struct EmulatedIndex {
  unsigned x = 0, y = 0;
};
inline thread_local EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;
inline thread_local std::barrier<>* block_barrier = nullptr;

inline void __syncthreads() { block_barrier->arrive_and_wait(); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) * b) >> 32);
}

namespace treadle::cuda {

// Runs the kernel for every thread of every block, block after block.
inline void run_blocks(unsigned blocks_x, unsigned blocks_y, unsigned threads,
                       const std::function<void()>& kernel) {
  for (unsigned y = 0; y < blocks_y; ++y) {
    for (unsigned x = 0; x < blocks_x; ++x) {
      std::barrier<> barrier(threads);
      std::vector<std::jthread> all;
      for (unsigned t = 0; t < threads; ++t) {
        all.emplace_back([&, t] {
          threadIdx = {t, 0};
          blockIdx = {x, y};
          blockDim = {threads, 1};
          gridDim = {blocks_x, blocks_y};
          block_barrier = &barrier;
          kernel();
          barrier.arrive_and_drop();
        });
      }
    }
  }
}

}  // namespace treadle::cuda
