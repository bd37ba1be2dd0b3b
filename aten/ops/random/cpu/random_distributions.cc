// Kernels that write Cauchy, log-normal and geometric numbers, each from one
// uniform number (the log-normal ones from a normal one).
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <numbers>

#include "aten/ops/cauchy_.h"
#include "aten/ops/geometric_.h"
#include "aten/ops/log_normal_.h"
#include "aten/ops/random/cpu/random_stream.h"

namespace treadle::cpu {
namespace {

template <class T>
void cauchy_cpu(const Tensor& self, double median, double sigma, const Generator& generator) {
  using R = random_type<T>;
  T* const out = self.data_as<T>();
  const int64_t n = self.numel();
  const RandomStream stream("cauchy_", generator, blocks_for(n, kPerBlock<R>));
  generate<kPerBlock<R>>(stream, n, out, [=](const uint32_t* words, int64_t k, int64_t) {
    const double u = open_unit<R>(words, k);
    return static_cast<T>(static_cast<R>(median + sigma * std::tan(std::numbers::pi * (u - 0.5))));
  });
}

template <class T>
void log_normal_cpu(const Tensor& self, double mean, double std, const Generator& generator) {
  using R = random_type<T>;
  T* const out = self.data_as<T>();
  const int64_t n = self.numel();
  const RandomStream stream("log_normal_", generator, blocks_for(n, kPerBlock<R>));
  for_each_run<kPerBlock<R>>(stream, n, [&](const uint32_t* words, int64_t first, int64_t count) {
    alignas(64) R numbers[kBlocksPerRun * kPerBlock<R>];
    simd::random_normal(words, count, numbers);
    for (int64_t k = 0; k < count; ++k) {
      const double exponent = mean + std * static_cast<double>(numbers[k]);
      out[first + k] = static_cast<T>(static_cast<R>(std::exp(exponent)));
    }
  });
}

// The number of trials up to the first success, from 1 on. A number beyond the integer's range
// becomes its largest value.
template <class T>
void geometric_cpu(const Tensor& self, double p, const Generator& generator) {
  T* const out = self.data_as<T>();
  const int64_t n = self.numel();
  const double scale = p < 1 ? 1 / std::log1p(-p) : 0;
  const RandomStream stream("geometric_", generator, blocks_for(n, kPerBlock<double>));
  generate<kPerBlock<double>>(stream, n, out, [=](const uint32_t* words, int64_t k, int64_t) {
    const double u = open_unit<double>(words, k);
    const double trials = std::floor(std::log(u) * scale) + 1;
    if constexpr (std::is_integral_v<T>) {
      if (trials > static_cast<double>(std::numeric_limits<T>::max()))
        return std::numeric_limits<T>::max();
    }
    return Scalar(trials).to<T>();
  });
}

const auto cauchy_registered = register_kernels<aten::ops::cauchy_, DeviceType::CPU>(
    []<class T>() { return &cauchy_cpu<T>; }, "cauchy_cpu");
const auto log_normal_registered = register_kernels<aten::ops::log_normal_, DeviceType::CPU>(
    []<class T>() { return &log_normal_cpu<T>; }, "log_normal_cpu");
const auto geometric_registered = register_kernels<aten::ops::geometric_, DeviceType::CPU>(
    []<class T>() { return &geometric_cpu<T>; }, "geometric_cpu");

}  // namespace
}  // namespace treadle::cpu
