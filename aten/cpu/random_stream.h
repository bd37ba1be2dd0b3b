// RandomStream: the numbers of one call, by index. Element i depends on the generator's seed, the call's offset and i alone, so
// any thread may compute it.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/generator.h"
#include "core/parallel.h"
#include "core/tensor.h"

namespace treadle::cpu {

class RandomStream {
 public:
  using Block = std::array<uint32_t, 4>;

  // Reserves `blocks` counters of the generator, or of the default one.
  RandomStream(const char* op, const Generator& generator, int64_t blocks) {
    const Generator g = generator_or_default(generator);
    check<ErrorKind::Runtime>(g->device().is_cpu(), op, ": expected a generator on the cpu, got one on ", g->device());
    at_ = g->reserve(static_cast<uint64_t>(blocks));
  }
  Block block(int64_t i) const { return philox4x32(at_.seed, at_.offset + static_cast<uint64_t>(i), 0); }

 private:
  GeneratorImpl::Position at_;
};

// The type random floating numbers of dtype T are computed in.
template <class T>
using random_type = std::conditional_t<std::is_same_v<real_type<T>, double>, double, float>;

// How many numbers of type R one block makes: 32 bits for a float, 64 for a double.
template <class R>
inline constexpr int64_t kPerBlock = std::is_same_v<R, double> ? 2 : 4;

// Number k of a block, in [0, 1).
template <class R>
R unit(const RandomStream::Block& b, int64_t k) {
  if constexpr (std::is_same_v<R, double>) return uniform_double(b[2 * k], b[2 * k + 1]);
  else return uniform_float(b[k]);
}

// Number k of a block, in (0, 1): the middle of one of 2^23 or 2^52 intervals, so that its logarithm is finite.
template <class R>
R open_unit(const RandomStream::Block& b, int64_t k) {
  if constexpr (std::is_same_v<R, double>) {
    const uint64_t bits = (static_cast<uint64_t>(b[2 * k]) << 32) | b[2 * k + 1];
    return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
  } else {
    return (static_cast<float>(b[k] >> 9) + 0.5f) * 0x1p-23f;
  }
}

// The normally distributed numbers of a block, two from each pair of uniform ones (Box and Muller).
template <class R>
std::array<R, kPerBlock<R>> normal_block(const RandomStream::Block& b) {
  std::array<R, kPerBlock<R>> out;
  for (int64_t k = 0; k < kPerBlock<R>; k += 2) {
    const R radius = std::sqrt(R(-2) * std::log(open_unit<R>(b, k)));
    const R angle = R(2) * std::numbers::pi_v<R> * unit<R>(b, k + 1);
    out[k] = radius * std::cos(angle);
    out[k + 1] = radius * std::sin(angle);
  }
  return out;
}

inline int64_t blocks_for(int64_t n, int64_t per_block) { return n / per_block + (n % per_block != 0); }

// Calls f(block, k, i) for every element i of [0, n), with the block that holds its number and the place k in it.
template <int64_t per_block, class F>
void for_each_random(const RandomStream& stream, int64_t n, F&& f) {
  constexpr int64_t kBlocksPerChunk = 4096;
  parallel_for(blocks_for(n, per_block), kBlocksPerChunk, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const RandomStream::Block block = stream.block(b);
      const int64_t first = b * per_block, count = std::min(per_block, n - first);
      for (int64_t k = 0; k < count; ++k) f(block, k, first + k);
    }
  });
}

}  // namespace treadle::cpu
