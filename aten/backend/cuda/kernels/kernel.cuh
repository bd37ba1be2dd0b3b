// Common parts of hand-written kernels: elements as numbers of the compute type, the device and
// stream of a launch and its size, and sums whose order depends only on the number of threads of a
// block.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "aten/backend/cuda/device/instructions.h"
#include "aten/backend/cuda/fault_record.h"
#include "aten/backend/cuda/faults.h"
#include "aten/backend/cuda/kernels/registration.h"
#include "aten/scalar/num.h"
#include "core/base/error.h"

namespace treadle::cuda {

// ---- elements ----

template <class T>
using Computed = compute_type<T>;

// The type of elements on a device, since std::complex has no arithmetic there.
template <class T>
struct StoredAs {
  using type = T;
};
template <class R>
struct StoredAs<std::complex<R>> {
  using type = simd::Cplx<R>;
};
template <class T>
using Stored = typename StoredAs<T>::type;

// By reference, because a bool's byte may have any value (element_value).
template <class T>
__device__ inline Computed<T> widened(const T& v) {
  if constexpr (std::is_same_v<T, Half>) {
    return float_of_half(v.bits);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return __uint_as_float(static_cast<unsigned>(v.bits) << 16);
  } else {
    return element_value(v);
  }
}
template <class T>
__device__ inline T narrowed(Computed<T> v) {
  if constexpr (std::is_same_v<T, Half>) {
    return Half::from_bits(half_bits(v));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return BFloat16::from_bits(bfloat16_bits(v));
  } else {
    return v;
  }
}

// ---- launching ----

constexpr int kBlock = 256;

// The tensor's device, current for the duration of a launch, and this thread's stream there.
struct Place {
  explicit Place(const Tensor& t)
      : where(t.device()), device(where.index), guard(device), stream(stream_on(device)) {}
  Device where;
  int device;
  DeviceGuard guard;
  cudaStream_t stream;
};

// The number of blocks for `n` elements. A thread processes several, one after another (see
// for_each_element).
inline unsigned blocks_for(int64_t n) {
  return static_cast<unsigned>(std::min<int64_t>((n + kBlock - 1) / kBlock, 1 << 20));
}
// A block for each of `n`.
inline unsigned block_each(int64_t n) {
  check<ErrorKind::Runtime>(n <= INT32_MAX, OpName("cuda"),
                            "expected a kernel of fewer than 2^31 blocks, got ", n);
  return static_cast<unsigned>(n);
}
inline void check_launched() { succeed(cudaGetLastError(), "launching a kernel"); }

template <class F>
__device__ inline void for_each_element(int64_t n, F f) {
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x)
    f(i);
}

// A name that is a constant of the device, at an address that kernels can read.
template <size_t n>
const char* on_device(const char (&name)[n]) {
  void* address = nullptr;
  succeed(cudaGetSymbolAddress(&address, name), "finding a name");
  return static_cast<const char*>(address);
}

// Element i of a contiguous tensor. The host waits for it.
template <class T>
T number_at(const Tensor& t, int64_t i) {
  T value;
  move_bytes({&value, 0, kCPU},
             {t.storage()->data(), (t.storage_offset() + i) * t.element_size(), t.device()},
             sizeof value, false);
  return element_value(value);
}

// An element that is only moved, as a number of its size.
template <size_t size>
struct BitsOf;
template <>
struct BitsOf<1> {
  using type = unsigned char;
};
template <>
struct BitsOf<2> {
  using type = unsigned short;
};
template <>
struct BitsOf<4> {
  using type = unsigned;
};
template <>
struct BitsOf<8> {
  using type = unsigned long long;
};
template <>
struct BitsOf<16> {
  using type = uint4;
};
template <class T>
using Bits = typename BitsOf<sizeof(T)>::type;

// A number of the host in a kernel's compute type.
template <class T>
Computed<Stored<T>> as_computed(const T& v) {
  if constexpr (is_complex_type<T>)
    return {v.real(), v.imag()};
  else
    return static_cast<Computed<T>>(v);
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
// The value of the lane whose index is this one's exclusive or with `step`.
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
// Each warp folds its own values. Then every thread folds the results of the warps' first lanes, in
// the warps' order.
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
