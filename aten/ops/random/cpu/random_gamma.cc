// Gamma numbers, points of the Dirichlet distribution, and the derivatives of both with respect to
// their parameters.
//
// They use the methods of aten/ops/random/random_draws.h and ElementStream. For small shapes a
// gamma number is a product below every floating number, so points are computed from logarithms.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "aten/ops/_dirichlet_grad.h"
#include "aten/ops/_sample_dirichlet.h"
#include "aten/ops/_standard_gamma.h"
#include "aten/ops/_standard_gamma_grad.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/random/cpu/element_stream.h"
#include "aten/ops/random/cpu/slope_blocks.h"
#include "aten/ops/random/gamma_slopes.h"
#include "aten/ops/random/random_draws.h"
#include "aten/ops/to.h"

namespace treadle::cpu {
namespace {

template <class T>
void standard_gamma_cpu(const Tensor& self, const Generator& generator, const Tensor& out) {
  const Tensor shapes = aten::contiguous(aten::to(self, ScalarType::Float64));
  const double* const shape = shapes.data_as<double>();
  T* const to = out.data_as<T>();
  const int64_t n = out.numel();
  const RandomStream stream("_standard_gamma", generator, n);
  for_each_element(stream, n, true, [&](int64_t i, ElementStream& numbers) {
    const GammaNumber number = draw_gamma(shape[i], numbers);
    to[i] = static_cast<T>(positive_number<T>(number.value * std::exp(number.log_factor)));
  });
}

template <class T>
void sample_dirichlet_cpu(const Tensor& self, const Generator& generator, const Tensor& out) {
  const Tensor shapes = aten::contiguous(aten::to(self, ScalarType::Float64));
  const double* const shape = shapes.data_as<double>();
  T* const to = out.data_as<T>();
  const int64_t n = out.numel(), row = self.dim() == 0 ? 1 : self.sizes().back();
  const RandomStream stream("_sample_dirichlet", generator, n);
  if (n == 0) return;
  parallel_for(n / row, std::max<int64_t>(1, kElementGrain / row), [&](int64_t begin, int64_t end) {
    std::vector<double> logs(static_cast<size_t>((end - begin) * row));
    for_elements(stream, begin * row, end * row, true, [&](int64_t i, ElementStream& numbers) {
      const GammaNumber number = draw_gamma(shape[i], numbers);
      logs[static_cast<size_t>(i - begin * row)] = std::log(number.value) + number.log_factor;
    });
    double* log = logs.data();
    for (int64_t r = begin; r < end; ++r, log += row) {
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t k = 0; k < row; ++k) largest = std::max(largest, log[k]);
      for (int64_t k = 0; k < row; ++k) sum += log[k] = std::exp(log[k] - largest);
      for (int64_t k = 0; k < row; ++k)
        to[r * row + k] = static_cast<T>(positive_number<T>(log[k] / sum));
    }
  });
}

// Tensors of one shape as contiguous doubles.
class Doubles {
 public:
  explicit Doubles(const Tensor& t) : held_(aten::contiguous(aten::to(t, ScalarType::Float64))) {}
  double operator[](int64_t i) const { return held_.data_as<double>()[i]; }

 private:
  Tensor held_;
};

template <class T, class F>
void fill(const Tensor& out, F&& f) {
  T* const to = out.data_as<T>();
  parallel_for(out.numel(), kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      to[i] = static_cast<T>(static_cast<compute_type<T>>(f(i)));
  });
}

template <class T>
void standard_gamma_grad_cpu(const Tensor& self, const Tensor& output, const Tensor& out) {
  if constexpr (std::is_same_v<T, float>) {
    const Tensor shapes = aten::contiguous(self), numbers = aten::contiguous(output);
    const float *const a = shapes.data_as<float>(), *const z = numbers.data_as<float>();
    float* const to = out.data_as<float>();
    parallel_for(out.numel(), kElementGrain, [&](int64_t begin, int64_t end) {
      simd::gamma_slopes(a + begin, z + begin, end - begin, to + begin);
    });
    return;
  }
  const Doubles shape(self), number(output);
  fill<T>(out, [&](int64_t i) { return gamma_slope(shape[i], number[i]); });
}

template <class T>
void dirichlet_grad_cpu(const Tensor& x, const Tensor& alpha, const Tensor& total,
                        const Tensor& out) {
  if constexpr (std::is_same_v<T, float>) {
    const Tensor places = aten::contiguous(x), shapes = aten::contiguous(alpha),
                 totals = aten::contiguous(total);
    const float *const p = places.data_as<float>(), *const a = shapes.data_as<float>(),
                       *const sums = totals.data_as<float>();
    float* const to = out.data_as<float>();
    parallel_for(out.numel(), kElementGrain, [&](int64_t begin, int64_t end) {
      simd::beta_slopes(p + begin, a + begin, sums + begin, end - begin, to + begin);
    });
    return;
  }
  const Doubles place(x), shape(alpha), sum(total);
  fill<T>(out, [&](int64_t i) { return beta_slope(place[i], shape[i], sum[i] - shape[i]); });
}

const auto gamma_registered = register_kernels<aten::ops::_standard_gamma, DeviceType::CPU>(
    []<class T>() { return &standard_gamma_cpu<T>; }, "standard_gamma_cpu");
const auto gamma_grad_registered =
    register_kernels<aten::ops::_standard_gamma_grad, DeviceType::CPU>(
        []<class T>() { return &standard_gamma_grad_cpu<T>; }, "standard_gamma_grad_cpu");
const auto dirichlet_registered = register_kernels<aten::ops::_sample_dirichlet, DeviceType::CPU>(
    []<class T>() { return &sample_dirichlet_cpu<T>; }, "sample_dirichlet_cpu");
const auto dirichlet_grad_registered =
    register_kernels<aten::ops::_dirichlet_grad, DeviceType::CPU>(
        []<class T>() { return &dirichlet_grad_cpu<T>; }, "dirichlet_grad_cpu");

}  // namespace
}  // namespace treadle::cpu
