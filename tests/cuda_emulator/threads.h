// A grid's threads on one thread of the host. They take turns: each runs until it has to wait for
// others of its block or warp. In every second launch the last thread is the first to run, so that
// what depends on the order shows.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstring>
#include <functional>

namespace treadle::cuda::emulator {

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

constexpr int kWarp = 32;
constexpr size_t kMaxShared = size_t{48} << 10;  // bytes of a block, that every device has
constexpr unsigned char kFresh = 0xCB;           // what memory is full of that nobody wrote

// Runs `thread` once for each thread of the grid. InternalError "a kernel's threads wait for each
// other: ..." where some of a block wait for those that never come.
void run_grid(dim3 blocks, dim3 threads, size_t shared, const std::function<void()>& thread);

// The same when all that is in the stream before has been done.
void queue_kernel(const char* name, dim3 blocks, dim3 threads, size_t shared, cudaStream_t stream,
                  std::function<void()> thread);

// ---- for a thread that runs ----

void* shared_memory();  // as much as the launch asked for
void meet_block();
void meet_warp();
int lane();
// The values that the lanes of a warp give to the same call; there until the next call but one.
constexpr size_t kMaxGiven = 64;
struct alignas(16) Given {
  char bytes[kMaxGiven];
  template <class T>
  T as() const {
    static_assert(sizeof(T) <= kMaxGiven);
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
};
const Given* give(const void* mine, size_t size);
template <class T>
const Given* give(const T& mine) {
  static_assert(sizeof(T) <= kMaxGiven);
  return give(&mine, sizeof mine);
}

}  // namespace treadle::cuda::emulator
