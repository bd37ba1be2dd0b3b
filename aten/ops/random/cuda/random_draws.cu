// Poisson, binomial and gamma numbers, points of the Dirichlet distribution, and the derivatives of
// gamma and beta numbers with respect to their parameters. The methods are the CPU's
// (aten/ops/random/random_draws.h), with its uniform numbers. Results may differ in their last
// digits, and so may a count that these digits decide.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_dirichlet_grad.h"
#include "aten/ops/_sample_dirichlet.h"
#include "aten/ops/_standard_gamma.h"
#include "aten/ops/_standard_gamma_grad.h"
#include "aten/ops/binomial.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"
#include "aten/ops/poisson.h"
#include "aten/ops/random/cuda/random_numbers.cuh"
#include "aten/ops/random/gamma_slopes.h"
#include "aten/ops/random/random_draws.h"
#include "aten/ops/to.h"

namespace treadle::cuda {
namespace {

// In the shape of `out`, as contiguous doubles.
Tensor doubles(const Tensor& t, const Tensor& out) {
  return aten::contiguous(aten::to(aten::expand(t, out.sizes()), ScalarType::Float64));
}

template <class T, class F>
__global__ void fill_kernel(int64_t n, T* out, F f) {
  for_each_element(n, [=](int64_t i) { out[i] = f(i); });
}
template <class T, class F>
void fill(const Tensor& out, F f) {
  if (out.numel() == 0) return;
  const Place place(out);
  fill_kernel<<<blocks_for(out.numel()), kBlock, 0, place.stream>>>(out.numel(), out.data_as<T>(),
                                                                    f);
  check_launched();
}

// ---- counts ----

__device__ const char kPoisson[] = "poisson";
__device__ const char kBinomial[] = "binomial";

template <class T>
struct PoissonNumber {
  RandomStart start;
  const double* rates;
  FaultPlace fault;
  __device__ T operator()(int64_t i) const {
    const double rate = rates[i];
    if (!(rate >= 0 && isfinite(rate))) {
      record_wrong_number(fault, kRates, kPoisson, rate);
      return element_from<T>(0.0);
    }
    ElementNumbers numbers(found(start), i);
    return element_from<T>(draw_poisson(rate, numbers));
  }
};
template <class T>
void poisson_cuda(const Tensor& self, const Generator& generator, const Tensor& out) {
  const Tensor rates = doubles(self, out);
  const auto start = reserve("poisson", out, generator, out.numel());
  fill<T>(out,
          PoissonNumber<T>{start, rates.data_as<double>(), faults().place(out.device().index)});
}

template <class T>
struct BinomialNumber {
  RandomStart start;
  const double *counts, *probabilities;
  FaultPlace fault;
  __device__ T operator()(int64_t i) const {
    const double count = counts[i], p = probabilities[i];
    const bool counts_fit = count >= 0 && count <= 0x1p53, p_fits = p >= 0 && p <= 1;
    if (!counts_fit) record_wrong_number(fault, kCounts, kBinomial, count);
    if (!p_fits) record_wrong_number(fault, kProbabilities, kBinomial, p);
    if (!counts_fit || !p_fits) return element_from<T>(0.0);
    ElementNumbers numbers(found(start), i);
    return element_from<T>(draw_binomial(floor(count), p, numbers));
  }
};
template <class T>
void binomial_cuda(const Tensor& count, const Tensor& prob, const Generator& generator,
                   const Tensor& out) {
  const Tensor counts = doubles(count, out), probabilities = doubles(prob, out);
  const auto start = reserve("binomial", out, generator, out.numel());
  fill<T>(out, BinomialNumber<T>{start, counts.data_as<double>(), probabilities.data_as<double>(),
                                 faults().place(out.device().index)});
}

// ---- gamma ----

template <class T>
struct GammaElement {
  RandomStart start;
  const double* shapes;
  __device__ T operator()(int64_t i) const {
    ElementNumbers numbers(found(start), i);
    const GammaNumber number = draw_gamma(shapes[i], numbers);
    return narrowed<T>(positive_number<T>(number.value * exp(number.log_factor)));
  }
};
template <class T>
void standard_gamma_cuda(const Tensor& self, const Generator& generator, const Tensor& out) {
  const Tensor shapes = doubles(self, out);
  const auto start = reserve("_standard_gamma", out, generator, out.numel());
  fill<T>(out, GammaElement<T>{start, shapes.data_as<double>()});
}

// The logarithms of gamma numbers, which may be too small for a number of their own.
struct GammaLogarithm {
  RandomStart start;
  const double* shapes;
  __device__ double operator()(int64_t i) const {
    ElementNumbers numbers(found(start), i);
    const GammaNumber number = draw_gamma(shapes[i], numbers);
    return log(number.value) + number.log_factor;
  }
};
// A thread makes a point of `row` gamma numbers, in their order.
template <class T>
__global__ void point_kernel(int64_t points, int64_t row, double* logs, T* out) {
  for_each_element(points, [=](int64_t r) {
    double* const own = logs + r * row;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t k = 0; k < row; ++k) largest = largest < own[k] ? own[k] : largest;
    for (int64_t k = 0; k < row; ++k) sum += own[k] = exp(own[k] - largest);
    for (int64_t k = 0; k < row; ++k)
      out[r * row + k] = narrowed<T>(positive_number<T>(own[k] / sum));
  });
}
template <class T>
void sample_dirichlet_cuda(const Tensor& self, const Generator& generator, const Tensor& out) {
  const Tensor shapes = doubles(self, out);
  const int64_t n = out.numel(), row = self.dim() == 0 ? 1 : self.sizes().back();
  const auto start = reserve("_sample_dirichlet", out, generator, n);
  if (n == 0) return;
  const Tensor logs = empty_tensor({n}, ScalarType::Float64, out.device());
  fill<double>(logs, GammaLogarithm{start, shapes.data_as<double>()});
  const Place place(out);
  point_kernel<<<blocks_for(n / row), kBlock, 0, place.stream>>>(
      n / row, row, logs.data_as<double>(), out.data_as<T>());
  check_launched();
}

template <class T>
struct GammaSlope {
  const double *shapes, *numbers;
  __device__ T operator()(int64_t i) const {
    return element_from<T>(gamma_slope(shapes[i], numbers[i]));
  }
};
template <class T>
void standard_gamma_grad_cuda(const Tensor& self, const Tensor& output, const Tensor& out) {
  const Tensor shapes = doubles(self, out), numbers = doubles(output, out);
  fill<T>(out, GammaSlope<T>{shapes.data_as<double>(), numbers.data_as<double>()});
}

template <class T>
struct DirichletSlope {
  const double *places, *shapes, *sums;
  __device__ T operator()(int64_t i) const {
    return element_from<T>(beta_slope(places[i], shapes[i], sums[i] - shapes[i]));
  }
};
template <class T>
void dirichlet_grad_cuda(const Tensor& x, const Tensor& alpha, const Tensor& total,
                         const Tensor& out) {
  const Tensor places = doubles(x, out), shapes = doubles(alpha, out), sums = doubles(total, out);
  fill<T>(out, DirichletSlope<T>{places.data_as<double>(), shapes.data_as<double>(),
                                 sums.data_as<double>()});
}

const auto poisson_registered = register_cuda<aten::ops::poisson>(
    Floats(), []<class T>() { return &poisson_cuda<T>; }, "poisson_cuda");
const auto binomial_registered = register_cuda<aten::ops::binomial>(
    Floats(), []<class T>() { return &binomial_cuda<T>; }, "binomial_cuda");
const auto gamma_registered = register_cuda<aten::ops::_standard_gamma>(
    Floats(), []<class T>() { return &standard_gamma_cuda<T>; }, "standard_gamma_cuda");
const auto gamma_grad_registered = register_cuda<aten::ops::_standard_gamma_grad>(
    Floats(), []<class T>() { return &standard_gamma_grad_cuda<T>; }, "standard_gamma_grad_cuda");
const auto dirichlet_registered = register_cuda<aten::ops::_sample_dirichlet>(
    Floats(), []<class T>() { return &sample_dirichlet_cuda<T>; }, "sample_dirichlet_cuda");
const auto dirichlet_grad_registered = register_cuda<aten::ops::_dirichlet_grad>(
    Floats(), []<class T>() { return &dirichlet_grad_cuda<T>; }, "dirichlet_grad_cuda");

}  // namespace
}  // namespace treadle::cuda
