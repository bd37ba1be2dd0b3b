// Built-in names of device code, on the host: .cu files that translate.py has written as C++ are
// compiled behind this header. The threads of a block take turns (threads.h); blocks run one after
// another, in their stream's order.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <math.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

#include "tests/cuda_emulator/builtins.h"
#include "tests/cuda_emulator/threads.h"

#undef __shared__
#define __shared__ static
#define __launch_bounds__(...)

// A kernel reads its own thread's number; all run in one thread of the host.
using treadle::cuda::emulator::blockDim;
using treadle::cuda::emulator::blockIdx;
using treadle::cuda::emulator::gridDim;
using treadle::cuda::emulator::threadIdx;

// Functions of the device that are constexpr may call it.
constexpr void __syncthreads() {
  if (!std::is_constant_evaluated()) treadle::cuda::emulator::meet_block();
}
inline void __syncwarp() { treadle::cuda::emulator::meet_warp(); }

template <class T>
T __shfl_xor_sync(unsigned, T value, int step) {
  return treadle::cuda::emulator::give(value)[treadle::cuda::emulator::lane() ^ step]
      .template as<T>();
}

// Threads take turns only where they meet: nothing comes between a read and a write.
template <class T, class U>
T atomicAdd(T* at, U value) {
  return std::exchange(*at, static_cast<T>(*at + value));
}
template <class T, class U>
T atomicMax(T* at, U value) {
  return std::exchange(*at, std::max(*at, static_cast<T>(value)));
}
template <class T, class U>
T atomicExch(T* at, U value) {
  return std::exchange(*at, static_cast<T>(value));
}

inline float __expf(float x) { return std::exp(x); }
using std::max;
using std::min;

namespace treadle::cuda::emulator {

struct LaunchGeometry {
  dim3 blocks, threads;
  size_t shared;
  cudaStream_t stream;
};
inline LaunchGeometry geometry(dim3 blocks, dim3 threads, size_t shared = 0,
                               cudaStream_t stream = nullptr) {
  return {blocks, threads, shared, stream};
}

// Queues a kernel with copies of its arguments.
template <class Kernel, class... Arguments>
void launch(const char* name, const LaunchGeometry& g, Kernel kernel, Arguments... arguments) {
  queue_kernel(name, g.blocks, g.threads, g.shared, g.stream, [=] { kernel(arguments...); });
}

}  // namespace treadle::cuda::emulator
