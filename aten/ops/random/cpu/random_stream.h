// RandomStream: the numbers of one call, by index. Element i depends on the
// generator's seed, the call's offset and i alone, so any thread may compute
// it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <type_traits>

#include "aten/ops/random/cpu/random_blocks.h"
#include "core/device/generator.h"
#include "core/tensor/tensor.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {

class RandomStream {
 public:
  // Reserves `blocks` counters of the generator, or of the default one.
  RandomStream(const char* op, const Generator& generator, int64_t blocks) {
    const Generator g = generator_or_default(generator);
    check<ErrorKind::Runtime>(g->device().is_cpu(), OpName(op),
                              "expected a generator on the cpu, got one on ", g->device());
    at_ = g->reserve(static_cast<uint64_t>(blocks));
  }
  // Block i. `part` 1, 2, ... continue it for elements that need more numbers.
  std::array<uint32_t, 4> block(int64_t i, uint64_t part = 0) const {
    return philox4x32(at_.seed, at_.offset + static_cast<uint64_t>(i), part);
  }
  // Blocks first, first + 1, ..., four words each; see simd::random_bits for
  // the room needed.
  void fill(int64_t first, int64_t blocks, uint32_t* words, uint64_t part = 0) const {
    simd::random_bits(at_.seed, at_.offset + static_cast<uint64_t>(first), part, blocks, words);
  }

 private:
  GeneratorImpl::Position at_;
};

// The type in which random floating numbers of dtype T are computed.
template <class T>
using random_type = std::conditional_t<std::is_same_v<real_type<T>, double>, double, float>;

// The count of numbers of type R in one block of four words: 32 bits for a float, 64 for a double.
template <class R>
inline constexpr int64_t kPerBlock = std::is_same_v<R, double> ? 2 : 4;

inline uint64_t word_pair(const uint32_t* words, int64_t k) {
  return (static_cast<uint64_t>(words[2 * k]) << 32) | words[2 * k + 1];
}

// Number k of the words, in [0, 1).
template <class R>
R unit(const uint32_t* words, int64_t k) {
  if constexpr (std::is_same_v<R, double>)
    return uniform_double(words[2 * k], words[2 * k + 1]);
  else
    return uniform_float(words[k]);
}

// Number k of the words, in (0, 1): the middle of one of 2^23 or 2^52
// intervals, so that its logarithm is finite.
template <class R>
R open_unit(const uint32_t* words, int64_t k) {
  if constexpr (std::is_same_v<R, double>)
    return (static_cast<double>(static_cast<int64_t>(word_pair(words, k) >> 12)) + 0.5) * 0x1p-52;
  else
    return (static_cast<float>(static_cast<int32_t>(words[k] >> 9)) + 0.5f) * 0x1p-23f;
}

inline int64_t blocks_for(int64_t n, int64_t per_block) {
  return n / per_block + (n % per_block != 0);
}

// Calls f(words, first, count) for runs of the elements [0, n). `words` begins with the block of
// element `first`.
inline constexpr int64_t kBlocksPerRun = 256;
template <int64_t per_block, class F>
void for_each_run(const RandomStream& stream, int64_t n, F&& f) {
  static_assert(kBlocksPerRun % simd::kRandomStep == 0);
  constexpr int64_t kBlocksPerChunk = 16 * kBlocksPerRun;
  parallel_for(blocks_for(n, per_block), kBlocksPerChunk, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[4 * kBlocksPerRun];
    for (int64_t block = begin; block < end; block += kBlocksPerRun) {
      const int64_t blocks = std::min(kBlocksPerRun, end - block), first = block * per_block;
      stream.fill(block, blocks, words);
      f(static_cast<const uint32_t*>(words), first, std::min(blocks * per_block, n - first));
    }
  });
}

// Writes out[i] = f(words, k) for every element i of [0, n), where k is its index among the words.
template <int64_t per_block, class T, class F>
void generate(const RandomStream& stream, int64_t n, T* out, F&& f) {
  for_each_run<per_block>(stream, n, [&](const uint32_t* words, int64_t first, int64_t count) {
    T* to = out + first;
    for (int64_t k = 0; k < count; ++k) to[k] = f(words, k, first + k);
  });
}

}  // namespace treadle::cpu
