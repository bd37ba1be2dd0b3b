// CPU kernels that write random numbers.
//
// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <numbers>

#include "aten/ops/_random_range_.h"
#include "aten/ops/bernoulli_.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"
#include "aten/ops/exponential_.h"
#include "aten/ops/normal_.h"
#include "aten/ops/random/cpu/random_stream.h"
#include "aten/ops/to.h"
#include "aten/ops/uniform_.h"

namespace treadle::cpu {
namespace {

// A number of [0, 1) with no more bits than T has, so that it does not round to 1.
template <class T>
random_type<T> unit_for(const uint32_t* words, int64_t k) {
  if constexpr (std::is_same_v<T, Half>)
    return static_cast<float>(words[k] >> 21) * 0x1p-11f;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return static_cast<float>(words[k] >> 24) * 0x1p-8f;
  else
    return unit<random_type<T>>(words, k);
}

template <class T>
void uniform_cpu(const Tensor& self, double from, double to, const Generator& generator) {
  using R = random_type<T>;
  // A complex number has two parts of their own.
  using Part = std::conditional_t<is_complex_type<T>, R, T>;
  const Part low = Scalar(from).checked_to<Part>("uniform_"),
             high = Scalar(to).checked_to<Part>("uniform_");
  const R start = static_cast<R>(low), range = static_cast<R>(high) - start;
  check<ErrorKind::Runtime>(std::isfinite(range), OpName("uniform_"), "expected a range that ",
                            self.dtype(), " holds, got from = ", from, ", to = ", to);
  Part* out = static_cast<Part*>(self.data());
  const int64_t n = self.numel() * (is_complex_type<T> ? 2 : 1);
  const RandomStream stream("uniform_", generator, blocks_for(n, kPerBlock<R>));
  generate<kPerBlock<R>>(stream, n, out, [=](const uint32_t* words, int64_t k, int64_t) {
    const Part v = static_cast<Part>(start + range * unit_for<Part>(words, k));
    return v < high ? v : low;  // rounding may have reached the end, which is not part of the range
  });
}

template <class T>
void normal_cpu(const Tensor& self, double mean, double std, const Generator& generator) {
  using R = random_type<T>;
  // A complex number has half of the variance in each part.
  const bool complex = is_complex_type<T>;
  using Part = std::conditional_t<is_complex_type<T>, R, T>;
  const R center = static_cast<R>(mean),
          scale = static_cast<R>(complex ? std * std::numbers::sqrt2 / 2 : std);
  Part* out = static_cast<Part*>(self.data());
  const int64_t n = self.numel() * (complex ? 2 : 1);
  const RandomStream stream("normal_", generator, blocks_for(n, kPerBlock<R>));
  for_each_run<kPerBlock<R>>(stream, n, [&](const uint32_t* words, int64_t first, int64_t count) {
    alignas(64) R numbers[kBlocksPerRun * kPerBlock<R>];
    simd::random_normal(words, count, numbers);
    for (int64_t k = 0; k < count; ++k) {
      const R shift = complex && k % 2 == 1 ? R(0) : center;
      out[first + k] = static_cast<Part>(shift + scale * numbers[k]);
    }
  });
}

template <class T>
void exponential_cpu(const Tensor& self, double lambd, const Generator& generator) {
  using R = random_type<T>;
  T* out = self.data_as<T>();
  const int64_t n = self.numel();
  const R scale = static_cast<R>(-1 / lambd);
  const RandomStream stream("exponential_", generator, blocks_for(n, kPerBlock<R>));
  generate<kPerBlock<R>>(stream, n, out, [=](const uint32_t* words, int64_t k, int64_t) {
    return static_cast<T>(scale * std::log(open_unit<R>(words, k)));
  });
}

template <class T>
void bernoulli_cpu(const Tensor& self, double p, const Generator& generator) {
  T* out = self.data_as<T>();
  const int64_t n = self.numel();
  // Words up to `last`, among 2^32, count as true. They are compared without a branch, which
  // would be unpredictable.
  const auto yes_words = static_cast<int64_t>(p * 0x1p32);
  const RandomStream stream("bernoulli_", generator, blocks_for(n, 4));
  if (yes_words == 0) {
    std::fill(out, out + n, static_cast<T>(0));
    return;
  }
  const auto last = static_cast<uint32_t>(yes_words - 1);
  generate<4>(stream, n, out, [=](const uint32_t* words, int64_t k, int64_t) {
    return static_cast<T>(static_cast<real_type<compute_type<T>>>(words[k] <= last));
  });
}

template <class T>
void bernoulli_tensor_cpu(const Tensor& self, const Tensor& p, const Generator& generator) {
  check<ErrorKind::Runtime>(p.is_floating_point(), OpName("bernoulli_"),
                            "expected floating probabilities, got ", p.dtype());
  check<ErrorKind::Runtime>(p.is_cpu(), OpName("bernoulli_"),
                            "expected probabilities on the cpu, as self, got ", p.device());
  const Tensor wide =
      aten::contiguous(aten::expand(aten::to(p, ScalarType::Float64), self.sizes()));
  const double* probability = wide.data_as<double>();
  const int64_t n = self.numel();
  for (int64_t i = 0; i < n; ++i) {
    check<ErrorKind::Runtime>(probability[i] >= 0 && probability[i] <= 1, OpName("bernoulli_"),
                              "expected probabilities in [0, 1], got ", probability[i]);
  }
  T* out = self.data_as<T>();
  const T yes = static_cast<T>(1), no = static_cast<T>(0);
  const RandomStream stream("bernoulli_", generator, blocks_for(n, 4));
  generate<4>(stream, n, out, [=](const uint32_t* words, int64_t k, int64_t i) {
    return words[k] * 0x1p-32 < probability[i] ? yes : no;
  });
}

template <class T>
void random_range_cpu(const Tensor& self, int64_t low, int64_t high, const Generator& generator) {
  T* out = self.data_as<T>();
  const int64_t n = self.numel();
  const uint64_t range =
      static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;  // 0 stands for 2^64
  const RandomStream stream("random_", generator, blocks_for(n, 2));
  generate<2>(stream, n, out, [=](const uint32_t* words, int64_t k, int64_t) {
    const uint64_t bits = word_pair(words, k);
    // The high half of a 128-bit product is uniform in [0, range) to within range / 2^64.
    const uint64_t in_range =
        range == 0 ? bits
                   : static_cast<uint64_t>(static_cast<unsigned __int128>(bits) * range >> 64);
    return Scalar(static_cast<int64_t>(static_cast<uint64_t>(low) + in_range)).to<T>();
  });
}

const auto uniform_registered = register_kernels<aten::ops::uniform_, DeviceType::CPU>(
    []<class T>() { return &uniform_cpu<T>; }, "uniform_cpu");
const auto normal_registered = register_kernels<aten::ops::normal_, DeviceType::CPU>(
    []<class T>() { return &normal_cpu<T>; }, "normal_cpu");
const auto exponential_registered = register_kernels<aten::ops::exponential_, DeviceType::CPU>(
    []<class T>() { return &exponential_cpu<T>; }, "exponential_cpu");
const auto bernoulli_registered = register_kernels<aten::ops::bernoulli__float, DeviceType::CPU>(
    []<class T>() { return &bernoulli_cpu<T>; }, "bernoulli_cpu");
const auto bernoulli_tensor_registered =
    register_kernels<aten::ops::bernoulli__Tensor, DeviceType::CPU>(
        []<class T>() { return &bernoulli_tensor_cpu<T>; }, "bernoulli_tensor_cpu");
const auto random_range_registered = register_kernels<aten::ops::_random_range_, DeviceType::CPU>(
    []<class T>() { return &random_range_cpu<T>; }, "random_range_cpu");

}  // namespace
}  // namespace treadle::cpu
