// What hand-written kernels share: elements as the numbers they are computed in, where and how to
// launch, and sums whose order depends on the number of threads of a block alone.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "aten/cuda/fault_record.h"
#include "aten/cuda/faults.h"
#include "aten/cuda/kernels/registration.h"

namespace treadle::cuda {

// ---- elements ----

template <class T>
struct ComputedIn {
  using type = T;
};
template <>
struct ComputedIn<Half> {
  using type = float;
};
template <>
struct ComputedIn<BFloat16> {
  using type = float;
};
template <class T>
using Computed = typename ComputedIn<T>::type;

template <class T>
__device__ inline Computed<T> widened(T v) {
  if constexpr (std::is_same_v<T, Half>) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v.bits));
    return f;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return __uint_as_float(static_cast<unsigned>(v.bits) << 16);
  } else {
    return v;
  }
}
template <class T>
__device__ inline T narrowed(Computed<T> v) {
  if constexpr (std::is_same_v<T, Half>) {
    Half h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(v));
    return h;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    BFloat16 b;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b.bits) : "f"(v));
    return b;
  } else {
    return v;
  }
}

// ---- launching ----

constexpr int kBlock = 256;

// The tensor's device, for the time of a launch, and this thread's stream there.
struct Place {
  explicit Place(const Tensor& t)
      : device(t.device().index), guard(device), stream(stream_on(device)) {}
  int device;
  DeviceGuard guard;
  cudaStream_t stream;
};

// Blocks for `n` elements, of which a thread does one after another (see for_each_element).
inline unsigned blocks_for(int64_t n) {
  return static_cast<unsigned>(std::min<int64_t>((n + kBlock - 1) / kBlock, 1 << 20));
}
inline void check_launched() { succeed(cudaGetLastError(), "launching a kernel"); }

template <class F>
__device__ inline void for_each_element(int64_t n, F f) {
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x)
    f(i);
}

// ---- folds of a block of kBlock threads; all of them get the result ----

struct Plus {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a + b;
  }
};
struct Larger {  // NaN where one is
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a != a ? a : a > b ? a : b;
  }
};
// What the lane `step` away, in the sense of "exclusive or", has.
template <class C>
__device__ inline C of_lane(C mine, int step) {
  constexpr size_t kWords = sizeof(C) / sizeof(unsigned);
  static_assert(kWords * sizeof(unsigned) == sizeof(C));
  unsigned words[kWords];
  memcpy(words, &mine, sizeof mine);
#pragma unroll
  for (size_t w = 0; w < kWords; ++w) words[w] = __shfl_xor_sync(0xffffffffu, words[w], step);
  memcpy(&mine, words, sizeof mine);
  return mine;
}
// Warps fold their own, then every thread folds what their first lanes have, in the warps' order.
template <class C, class Join>
__device__ inline C folded_in_block(C mine, Join join) {
  constexpr int kWarps = kBlock / 32;
  __shared__ C parts[kWarps];
#pragma unroll
  for (int step = 1; step < 32; step *= 2) mine = join(mine, of_lane(mine, step));
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
  __syncthreads();
  C all = parts[0];
#pragma unroll
  for (int w = 1; w < kWarps; ++w) all = join(all, parts[w]);
  return all;
}

}  // namespace treadle::cuda
