// Random numbers: the CPU's, as element i depends on the generator's seed, the call's place in its
// sequence and i alone (core/generator.h; in a graph, aten/cuda/graphs.h). Normal numbers go
// through the device's logarithm, sine and cosine, and differ from the CPU's in their last digits.
#include <cmath>
#include <numbers>

#include "aten/cuda/graphs.h"
#include "aten/cuda/kernels/kernel.cuh"
#include "aten/ops/bernoulli_.h"
#include "aten/ops/normal_.h"
#include "aten/ops/uniform_.h"
#include "core/generator.h"

namespace treadle::cuda {
namespace {

// The four words of a counter; philox4x32() of core/generator.h for a device.
__device__ inline uint4 philox(uint64_t seed, uint64_t counter) {
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = 0, c3 = 0;
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint32_t high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
    const uint32_t high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

RandomStart reserve(const char* op, const Tensor& self, const Generator& generator,
                    int64_t blocks) {
  const Generator g = generator_or_default(generator, self.device());
  check<ErrorKind::Runtime>(g->device().type == DeviceType::CUDA, op,
                            ": expected a generator on cuda, got one on ", g->device());
  return reserve_random(self.device().index, g, static_cast<uint64_t>(blocks));
}
int64_t blocks_of(int64_t n, int64_t per_block) { return (n + per_block - 1) / per_block; }

// A call of f(words, first) for each counter: f writes the elements from `first`.
template <int per_block, class F>
__device__ inline void for_each_counter(RandomStart start, int64_t n, F f) {
  GeneratorImpl::Position at = start.at;
  if (start.base) at = {start.base->seed, start.base->offset + at.offset};
  for_each_element((n + per_block - 1) / per_block, [=](int64_t block) {
    const uint4 v = philox(at.seed, at.offset + static_cast<uint64_t>(block));
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
    f(words, block * per_block);
  });
}

// Computed in double for double, else in float.
template <class T>
using Drawn = std::conditional_t<std::is_same_v<T, double>, double, float>;
template <class T>
constexpr int kPerBlock = std::is_same_v<T, double> ? 2 : 4;

// A number of [0, 1) with no more bits than T has, so that it does not round to 1.
template <class T>
__device__ inline Drawn<T> unit(const uint32_t* words, int k) {
  if constexpr (std::is_same_v<T, double>) {
    const uint64_t pair = (static_cast<uint64_t>(words[2 * k]) << 32) | words[2 * k + 1];
    return static_cast<double>(pair >> 11) * 0x1p-53;
  } else if constexpr (std::is_same_v<T, Half>) {
    return static_cast<float>(words[k] >> 21) * 0x1p-11f;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return static_cast<float>(words[k] >> 24) * 0x1p-8f;
  } else {
    return static_cast<float>(words[k] >> 8) * 0x1p-24f;
  }
}

template <class T>
__global__ void uniform_kernel(T* out, int64_t n, Drawn<T> start, Drawn<T> range, T low,
                               Drawn<T> high, RandomStart at) {
  for_each_counter<kPerBlock<T>>(at, n, [=](const uint32_t* words, int64_t first) {
    for (int k = 0; k < kPerBlock<T> && first + k < n; ++k) {
      const T v = narrowed<T>(start + range * unit<T>(words, k));
      // Rounding may have reached the end, which is not part of the range.
      out[first + k] = widened(v) < high ? v : low;
    }
  });
}
template <class T>
void uniform_cuda(const Tensor& self, double from, double to, const Generator& generator) {
  using R = Drawn<T>;
  const T low = Scalar(from).checked_to<T>("uniform_"), high = Scalar(to).checked_to<T>("uniform_");
  const R start = static_cast<R>(low), range = static_cast<R>(high) - start;
  check<ErrorKind::Runtime>(std::isfinite(range), "uniform_: expected a range that ", self.dtype(),
                            " holds, got from = ", from, ", to = ", to);
  const int64_t n = self.numel(), counters = blocks_of(n, kPerBlock<T>);
  const auto at = reserve("uniform_", self, generator, counters);
  if (n == 0) return;
  const Place place(self);
  uniform_kernel<T><<<blocks_for(counters), kBlock, 0, place.stream>>>(
      self.data_as<T>(), n, start, range, low, static_cast<R>(high), at);
  check_launched();
}

// Box and Muller: two words (four for double) make two numbers.
template <class T>
__global__ void normal_kernel(T* out, int64_t n, Drawn<T> mean, Drawn<T> std, RandomStart at) {
  using R = Drawn<T>;
  for_each_counter<kPerBlock<T>>(at, n, [=](const uint32_t* words, int64_t first) {
    for (int k = 0; k < kPerBlock<T>; k += 2) {
      R open, closed;  // in (0, 1), the middle of an interval, and in [0, 1)
      if constexpr (std::is_same_v<T, double>) {
        const uint64_t a = (static_cast<uint64_t>(words[0]) << 32) | words[1];
        const uint64_t b = (static_cast<uint64_t>(words[2]) << 32) | words[3];
        open = (static_cast<double>(a >> 12) + 0.5) * 0x1p-52;
        closed = static_cast<double>(b >> 11) * 0x1p-53;
      } else {
        open = (static_cast<float>(words[k] >> 9) + 0.5f) * 0x1p-23f;
        closed = static_cast<float>(words[k + 1] >> 8) * 0x1p-24f;
      }
      const R radius = sqrt(R(-2) * log(open)), angle = R(2 * std::numbers::pi) * closed;
      if (first + k < n) out[first + k] = narrowed<T>(mean + std * (radius * cos(angle)));
      if (first + k + 1 < n) out[first + k + 1] = narrowed<T>(mean + std * (radius * sin(angle)));
    }
  });
}
template <class T>
void normal_cuda(const Tensor& self, double mean, double std, const Generator& generator) {
  const int64_t n = self.numel(), counters = blocks_of(n, kPerBlock<T>);
  const auto at = reserve("normal_", self, generator, counters);
  if (n == 0) return;
  const Place place(self);
  normal_kernel<T><<<blocks_for(counters), kBlock, 0, place.stream>>>(
      self.data_as<T>(), n, static_cast<Drawn<T>>(mean), static_cast<Drawn<T>>(std), at);
  check_launched();
}

// Of the 2^32 words, those up to `last` are a yes; where `never`, none is.
template <class T>
__global__ void bernoulli_kernel(T* out, int64_t n, uint32_t last, bool never, T yes, T no,
                                 RandomStart at) {
  for_each_counter<4>(at, n, [=](const uint32_t* words, int64_t first) {
    for (int k = 0; k < 4 && first + k < n; ++k)
      out[first + k] = !never && words[k] <= last ? yes : no;
  });
}
template <class T>
void bernoulli_cuda(const Tensor& self, double p, const Generator& generator) {
  const int64_t n = self.numel(), counters = blocks_of(n, 4);
  const auto at = reserve("bernoulli_", self, generator, counters);
  if (n == 0) return;
  const auto yes_words = static_cast<int64_t>(p * 0x1p32);
  const Place place(self);
  bernoulli_kernel<T><<<blocks_for(counters), kBlock, 0, place.stream>>>(
      self.data_as<T>(), n, static_cast<uint32_t>(yes_words - 1), yes_words == 0, static_cast<T>(1),
      static_cast<T>(0), at);
  check_launched();
}

using Reals =
    TypeList<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float, double, Half, BFloat16>;

const auto uniform_registered = register_cuda<aten::ops::uniform_>(
    Floats(), []<class T>() { return &uniform_cuda<T>; }, "uniform_cuda");
const auto normal_registered = register_cuda<aten::ops::normal_>(
    Floats(), []<class T>() { return &normal_cuda<T>; }, "normal_cuda");
const auto bernoulli_registered = register_cuda<aten::ops::bernoulli__float>(
    Reals(), []<class T>() { return &bernoulli_cuda<T>; }, "bernoulli_cuda");

}  // namespace
}  // namespace treadle::cuda
