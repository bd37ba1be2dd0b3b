// Random counts: Poisson and binomial numbers, with the parameters of each
// element.
//
// They use the methods of aten/ops/random/random_draws.h and ElementStream.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "aten/ops/binomial.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"
#include "aten/ops/poisson.h"
#include "aten/ops/random/cpu/element_stream.h"
#include "aten/ops/random/random_draws.h"
#include "aten/ops/to.h"

namespace treadle::cpu {
namespace {

template <class T>
void poisson_cpu(const Tensor& self, const Generator& generator, const Tensor& out) {
  const Tensor rates = aten::contiguous(aten::to(self, ScalarType::Float64));
  const double* const rate = rates.data_as<double>();
  const int64_t n = out.numel();
  for (int64_t i = 0; i < n; ++i) {
    check<ErrorKind::Runtime>(rate[i] >= 0 && std::isfinite(rate[i]), OpName("poisson"),
                              "expected finite rates >= 0, got ", rate[i]);
  }
  T* const to = out.data_as<T>();
  const RandomStream stream("poisson", generator, n);
  for_each_element(stream, n, false, [&](int64_t i, ElementStream& numbers) {
    to[i] = static_cast<T>(static_cast<compute_type<T>>(draw_poisson(rate[i], numbers)));
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
    check<ErrorKind::Runtime>(counts[i] >= 0 && counts[i] <= 0x1p53, OpName("binomial"),
                              "expected counts in [0, 2^53], got ", counts[i]);
    check<ErrorKind::Runtime>(probs[i] >= 0 && probs[i] <= 1, OpName("binomial"),
                              "expected probabilities in [0, 1], got ", probs[i]);
  }
  T* const to = out.data_as<T>();
  const RandomStream stream("binomial", generator, n);
  for_each_element(stream, n, false, [&](int64_t i, ElementStream& numbers) {
    to[i] = static_cast<T>(
        static_cast<compute_type<T>>(draw_binomial(std::floor(counts[i]), probs[i], numbers)));
  });
}

const auto poisson_registered = register_kernels<aten::ops::poisson, DeviceType::CPU>(
    []<class T>() { return &poisson_cpu<T>; }, "poisson_cpu");
const auto binomial_registered = register_kernels<aten::ops::binomial, DeviceType::CPU>(
    []<class T>() { return &binomial_cpu<T>; }, "binomial_cpu");

}  // namespace
}  // namespace treadle::cpu
