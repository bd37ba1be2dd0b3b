// Random counts: Poisson and binomial numbers, with the parameters of each
// element.
//
// A number takes a varying count of uniform ones; see ElementStream.
#include <cmath>
#include <numbers>

#include "aten/cpu/element_stream.h"
#include "aten/ops/binomial.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"
#include "aten/ops/poisson.h"
#include "aten/ops/to.h"

namespace treadle::cpu {
namespace {

// The logarithm of k!. std::lgamma writes a global, so it is not for threads;
// Stirling's series is exact to double from 10 on.
double log_factorial(double k) {
  static constexpr double kSmall[] = {0,
                                      0,
                                      0.69314718055994531,
                                      1.7917594692280550,
                                      3.1780538303479458,
                                      4.7874917427820458,
                                      6.5792512120101012,
                                      8.5251613610654147,
                                      10.604602902745251,
                                      12.801827480081469};
  if (k < 10) return kSmall[static_cast<int>(k)];
  const double n = k + 1, square = 1 / (n * n);
  const double series =
      (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680))) / n;
  return (n - 0.5) * std::log(n) - n + 0.5 * std::log(2 * std::numbers::pi) + series;
}

// Small rates: counts the factors until a product of uniform numbers is below
// exp(-rate).
double small_poisson(double rate, ElementStream& numbers) {
  const double stop = std::exp(-rate);
  double count = 0;
  for (double product = numbers.next(); product > stop; product *= numbers.next()) ++count;
  return count;
}

// Large rates: Hoermann's transformed rejection with squeeze (PTRS, 1993).
double large_poisson(double rate, ElementStream& numbers) {
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = numbers.next() - 0.5, v = numbers.next();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -rate + k * log_rate - log_factorial(k))
      return k;
  }
}

// Few expected successes: sums geometric waiting times.
double small_binomial(double count, double p, ElementStream& numbers) {
  const double scale = 1 / std::log1p(-p);
  double successes = 0;
  for (double trials = 0;; ++successes) {
    trials += std::floor(std::log(numbers.next()) * scale) + 1;
    if (!(trials <= count)) return successes;
  }
}

// Many: Hoermann's transformed rejection with squeeze (BTRS, 1993); p at most
// 1/2.
double large_binomial(double count, double p, ElementStream& numbers) {
  const double q = 1 - p, spread = std::sqrt(count * p * q);
  const double b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double center = count * p + 0.5, v_r = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * spread;
  const double odds = std::log(p / q), mode = std::floor((count + 1) * p);
  const double top = log_factorial(mode) + log_factorial(count - mode);
  while (true) {
    const double u = numbers.next() - 0.5, v = numbers.next();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + center);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > count) continue;
    if (std::log(v * alpha / (a / (us * us) + b)) <=
        top - log_factorial(k) - log_factorial(count - k) + (k - mode) * odds)
      return k;
  }
}

double draw_binomial(double count, double p, ElementStream& numbers) {
  if (count == 0 || p == 0) return 0;
  if (p == 1) return count;
  const bool flipped = p > 0.5;
  const double share = flipped ? 1 - p : p;
  const double successes = count * share >= 10 ? large_binomial(count, share, numbers)
                                               : small_binomial(count, share, numbers);
  return flipped ? count - successes : successes;
}

template <class T>
void poisson_cpu(const Tensor& self, const Generator& generator, const Tensor& out) {
  const Tensor rates = aten::contiguous(aten::to(self, ScalarType::Float64));
  const double* const rate = rates.data_as<double>();
  const int64_t n = out.numel();
  for (int64_t i = 0; i < n; ++i) {
    check<ErrorKind::Runtime>(rate[i] >= 0 && std::isfinite(rate[i]),
                              "poisson: expected finite rates >= 0, got ", rate[i]);
  }
  T* const to = out.data_as<T>();
  const RandomStream stream("poisson", generator, n);
  parallel_for(n, kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ElementStream numbers(stream, i);
      const double k = rate[i] == 0   ? 0
                       : rate[i] < 10 ? small_poisson(rate[i], numbers)
                                      : large_poisson(rate[i], numbers);
      to[i] = static_cast<T>(static_cast<compute_type<T>>(k));
    }
  });
}

template <class T>
void binomial_cpu(const Tensor& count, const Tensor& prob, const Generator& generator,
                  const Tensor& out) {
  const auto wide = [&](const Tensor& t) {
    return aten::contiguous(aten::to(aten::expand(t, out.sizes()), ScalarType::Float64));
  };
  const Tensor all_counts = wide(count), all_probs = wide(prob);
  const double* const counts = all_counts.data_as<double>();
  const double* const probs = all_probs.data_as<double>();
  const int64_t n = out.numel();
  for (int64_t i = 0; i < n; ++i) {
    check<ErrorKind::Runtime>(counts[i] >= 0 && counts[i] <= 0x1p53,
                              "binomial: expected counts in [0, 2^53], got ", counts[i]);
    check<ErrorKind::Runtime>(probs[i] >= 0 && probs[i] <= 1,
                              "binomial: expected probabilities in [0, 1], got ", probs[i]);
  }
  T* const to = out.data_as<T>();
  const RandomStream stream("binomial", generator, n);
  parallel_for(n, kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ElementStream numbers(stream, i);
      to[i] = static_cast<T>(
          static_cast<compute_type<T>>(draw_binomial(std::floor(counts[i]), probs[i], numbers)));
    }
  });
}

const auto poisson_registered = register_kernels<aten::ops::poisson, DeviceType::CPU>(
    []<class T>() { return &poisson_cpu<T>; }, "poisson_cpu");
const auto binomial_registered = register_kernels<aten::ops::binomial, DeviceType::CPU>(
    []<class T>() { return &binomial_cpu<T>; }, "binomial_cpu");

}  // namespace
}  // namespace treadle::cpu
