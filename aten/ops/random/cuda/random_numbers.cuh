// The random numbers of a call on a device, by index: the same as the CPU's
// (aten/ops/random/cpu/random_stream.h). Element i depends only on the generator's seed, the call's
// offset in its sequence and i. The kernel reads the offset when it runs, because it may be part of
// a graph (aten/backend/cuda/graphs.h).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <numbers>

#include "aten/backend/cuda/graphs.h"
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/random/cuda/philox.cuh"
#include "core/device/generator.h"

namespace treadle::cuda {

// The position of a call that takes `blocks` counters of the generator, or of the device's own.
inline RandomStart reserve(const char* op, const Tensor& self, const Generator& generator,
                           int64_t blocks) {
  const Generator g = generator_or_default(generator, self.device());
  check<ErrorKind::Runtime>(g->device().type == DeviceType::CUDA, OpName(op),
                            "expected a generator on cuda, got one on ", g->device());
  return reserve_random(self.device().index, g, static_cast<uint64_t>(blocks));
}
__device__ inline GeneratorImpl::Position found(RandomStart start) {
  if (!start.base) return start.at;
  return {start.base->seed, start.base->offset + start.at.offset};
}
inline int64_t blocks_of(int64_t n, int64_t per_block) { return (n + per_block - 1) / per_block; }

// A call of f(words, first) for each counter. f writes the elements from `first`.
template <int per_block, class F>
__device__ inline void for_each_counter(RandomStart start, int64_t n, F f) {
  const GeneratorImpl::Position at = found(start);
  for_each_element((n + per_block - 1) / per_block, [=](int64_t block) {
    const uint4 v = philox(at.seed, at.offset + static_cast<uint64_t>(block));
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
    f(words, block * per_block);
  });
}

// out[i] = f(words, k, i) for each element, where k is its index among the words.
template <int per_block, class T, class F>
__global__ void generate_kernel(RandomStart start, int64_t n, T* out, F f) {
  for_each_counter<per_block>(start, n, [=](const uint32_t* words, int64_t first) {
    for (int k = 0; k < per_block && first + k < n; ++k) out[first + k] = f(words, k, first + k);
  });
}
// For `self`, whose elements have that many `parts`.
template <int per_block, class T, class F>
void generate(const char* op, const Tensor& self, const Generator& generator, T* out, F f,
              int64_t parts = 1) {
  const int64_t n = self.numel() * parts, counters = blocks_of(n, per_block);
  const auto at = reserve(op, self, generator, counters);
  if (n == 0) return;
  const Place place(self);
  generate_kernel<per_block><<<blocks_for(counters), kBlock, 0, place.stream>>>(at, n, out, f);
  check_launched();
}

// Computed in double for double, else in float.
template <class T>
using Drawn = std::conditional_t<std::is_same_v<real_type<T>, double>, double, float>;
template <class T>
constexpr int kPerBlock = std::is_same_v<Drawn<T>, double> ? 2 : 4;

__host__ __device__ inline uint64_t word_pair(const uint32_t* words, int k) {
  return (static_cast<uint64_t>(words[2 * k]) << 32) | words[2 * k + 1];
}

// Number k of the words in [0, 1), with no more bits than T has, so that it does not round to 1.
template <class T>
__device__ inline Drawn<T> unit(const uint32_t* words, int k) {
  if constexpr (std::is_same_v<T, double>)
    return static_cast<double>(word_pair(words, k) >> 11) * 0x1p-53;
  else if constexpr (std::is_same_v<T, Half>)
    return static_cast<float>(words[k] >> 21) * 0x1p-11f;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return static_cast<float>(words[k] >> 24) * 0x1p-8f;
  else
    return static_cast<float>(words[k] >> 8) * 0x1p-24f;
}
// Number k of the words in (0, 1): the middle of an interval, so that its logarithm is finite.
template <class R>
__host__ __device__ inline R open_unit(const uint32_t* words, int k) {
  if constexpr (std::is_same_v<R, double>)
    return (static_cast<double>(word_pair(words, k) >> 12) + 0.5) * 0x1p-52;
  else
    return (static_cast<float>(words[k] >> 9) + 0.5f) * 0x1p-23f;
}
// Number k of the words, normally distributed. Box-Muller makes two from each pair.
template <class R>
__device__ inline R normal(const uint32_t* words, int k) {
  const int even = k & ~1;
  const R radius = sqrt(R(-2) * log(open_unit<R>(words, even)));
  const R angle = R(2 * std::numbers::pi) * unit<R>(words, even + 1);
  return radius * (k == even ? cos(angle) : sin(angle));
}

// Uniform and normal numbers for one element, as many as it requests: block i of the call, and its
// parts. It also runs on the host, like the methods that use it.
class ElementNumbers {
 public:
  __host__ __device__ ElementNumbers(GeneratorImpl::Position at, int64_t element)
      : seed_(at.seed), counter_(at.offset + static_cast<uint64_t>(element)) {}
  // In (0, 1).
  __host__ __device__ double next() {
    if (used_ == 2) {
      const auto block = philox4x32(seed_, counter_, part_++);
      for (int i = 0; i < 4; ++i) words_[i] = block[static_cast<size_t>(i)];
      used_ = 0;
    }
    return open_unit<double>(words_, used_++);
  }
  __host__ __device__ double next_normal() {
    const double radius = std::sqrt(-2 * std::log(next()));
    return radius * std::cos(2 * std::numbers::pi * next());
  }

 private:
  uint64_t seed_, counter_, part_ = 0;
  uint32_t words_[4] = {};
  int used_ = 2;
};

// A number as an element of T.
template <class T>
__device__ inline T element_from(double v) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(v);
  else
    return narrowed<T>(static_cast<Computed<T>>(v));
}
template <class T>
__device__ inline T element_from(int64_t v) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(v);
  else
    return narrowed<T>(static_cast<Computed<T>>(v));
}

}  // namespace treadle::cuda
