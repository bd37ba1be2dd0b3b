// CPU kernels that draw indices: random permutations, and samples in proportion to weights.
//
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "aten/ops/_randperm_.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/multinomial.h"
#include "aten/ops/random/cpu/random_stream.h"

namespace treadle::cpu {
namespace {

// Swaps each element with one that is not before it (Fisher-Yates). It is serial, because each step
// needs the one before.
template <class T>
void randperm_cpu(const Tensor& self, const Generator& generator) {
  T* out = self.data_as<T>();
  const int64_t n = self.numel();
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(i);
  const RandomStream stream("randperm", generator, blocks_for(n, 2));
  alignas(64) uint32_t words[4 * kBlocksPerRun];
  constexpr int64_t kRun = 2 * kBlocksPerRun;
  for (int64_t i = 0; i + 1 < n; ++i) {
    if (i % kRun == 0) stream.fill(i / 2, blocks_for(std::min(kRun, n - i), 2), words);
    const uint64_t bits = word_pair(words, i % kRun);
    const auto step = static_cast<int64_t>(
        static_cast<unsigned __int128>(bits) * static_cast<uint64_t>(n - i) >> 64);
    std::swap(out[i], out[i + step]);
  }
}

// With replacement: the sample's number falls into one of the intervals bounded by the sums of the
// weights.
template <class T>
void draw_with_replacement(const T* weights, int64_t n, const RandomStream& stream,
                           int64_t first_block, int64_t samples, int64_t* out) {
  std::vector<double> sums(static_cast<size_t>(n));
  double total = 0;
  for (int64_t i = 0; i < n; ++i) {
    total += static_cast<double>(static_cast<compute_type<T>>(weights[i]));
    sums[static_cast<size_t>(i)] = total;
  }
  int64_t last = n - 1;
  while (last > 0 && !(static_cast<compute_type<T>>(weights[last]) > 0)) --last;
  for (int64_t s = 0; s < samples; ++s) {
    const double at = unit<double>(stream.block(first_block + s).data(), 0) * total;
    const auto found = std::upper_bound(sums.begin(), sums.end(), at) - sums.begin();
    out[s] = std::min<int64_t>(found, last);  // rounding may have reached the total
  }
}

// Without replacement: the smallest of exponential numbers divided by the weights come in the order
// of drawing.
template <class T>
void draw_without_replacement(const T* weights, int64_t n, const RandomStream& stream,
                              int64_t first_block, int64_t samples, int64_t* out) {
  std::vector<double> keys(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const double w = static_cast<double>(static_cast<compute_type<T>>(weights[i]));
    keys[static_cast<size_t>(i)] =
        -std::log(open_unit<double>(stream.block(first_block + i).data(), 0)) / w;
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::partial_sort(order.begin(), order.begin() + samples, order.end(), [&](int64_t a, int64_t b) {
    const double ka = keys[static_cast<size_t>(a)], kb = keys[static_cast<size_t>(b)];
    return ka < kb || (ka == kb && a < b);
  });
  std::copy_n(order.begin(), samples, out);
}

template <class T>
void multinomial_cpu(const Tensor& self, int64_t num_samples, bool replacement,
                     const Generator& generator, const Tensor& out) {
  const Tensor input = aten::contiguous(self);
  const T* weights = input.data_as<T>();
  const int64_t n = self.sizes().back(), rows = self.numel() / n;
  for (int64_t row = 0; row < rows; ++row) {
    const auto is_weight = [](T w) {
      const auto number = static_cast<compute_type<T>>(w);
      return (number >= 0) & (number <= std::numeric_limits<compute_type<T>>::max());
    };
    const T* const own = weights + row * n;
    constexpr int64_t kRun = 1024;  // numbers that are counted in the elements' own width
    int64_t wrong = 0, positive = 0;
    for (int64_t first = 0; first < n; first += kRun) {
      int32_t wrong_here = 0, positive_here = 0;
      for (int64_t i = first; i < std::min(n, first + kRun); ++i) {
        wrong_here += !is_weight(own[i]);
        positive_here += static_cast<compute_type<T>>(own[i]) > 0;
      }
      wrong += wrong_here;
      positive += positive_here;
    }
    if (wrong > 0) {
      const T* const first = std::find_if_not(own, own + n, is_weight);
      fail<ErrorKind::Runtime>(OpName("multinomial"), "expected finite weights >= 0, got ",
                               static_cast<double>(static_cast<compute_type<T>>(*first)));
    }
    check<ErrorKind::Runtime>(positive > 0, OpName("multinomial"),
                              "expected weights with a sum > 0, got a sum of 0");
    check<ErrorKind::Runtime>(replacement || positive >= num_samples, OpName("multinomial"),
                              "expected at least ", num_samples,
                              " weights > 0 to draw from without replacement, got ", positive);
  }
  const int64_t per_row = replacement ? num_samples : n;
  int64_t blocks;
  check<ErrorKind::Runtime>(!__builtin_mul_overflow(rows, per_row, &blocks), OpName("multinomial"),
                            "expected fewer samples, got num_samples = ", num_samples);
  const RandomStream stream("multinomial", generator, blocks);
  int64_t* samples = out.data_as<int64_t>();
  parallel_for(rows, std::max<int64_t>(1, 16384 / n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto draw = replacement ? &draw_with_replacement<T> : &draw_without_replacement<T>;
      draw(weights + row * n, n, stream, row * per_row, num_samples, samples + row * num_samples);
    }
  });
}

const auto randperm_registered = register_kernels<aten::ops::_randperm_, DeviceType::CPU>(
    []<class T>() { return &randperm_cpu<T>; }, "randperm_cpu");
const auto multinomial_registered = register_kernels<aten::ops::multinomial, DeviceType::CPU>(
    []<class T>() { return &multinomial_cpu<T>; }, "multinomial_cpu");

}  // namespace
}  // namespace treadle::cpu
