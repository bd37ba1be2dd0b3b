// logcumsumexp: the logarithm of the running sum of exponentials, along a
// dimension.
//
// The state is the largest element so far and the sum of exponentials relative to it. So there is
// no overflow, and each step costs one exponential.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/logcumsumexp.h"
#include "aten/scalar/complex_math.h"

namespace treadle::cpu {
namespace {

struct LogSum {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;  // of exp(x - largest)

  void add(double x) {
    if (std::isnan(x) || std::isnan(largest)) {
      largest = std::numeric_limits<double>::quiet_NaN();
    } else if (x <= largest) {
      sum += x == largest ? 1 : std::exp(x - largest);  // equal infinities would subtract to NaN
    } else {
      sum = std::isfinite(largest) ? sum * std::exp(largest - x) + 1 : 1;
      largest = x;
    }
  }
  double value() const { return std::isfinite(largest) ? largest + std::log(sum) : largest; }
};

// For complex numbers the state is the running logarithm itself, because its number of turns
// depends on the order of the additions.
struct ComplexLogSum {
  using Complex = simd::Cplx<double>;
  Complex all{-std::numeric_limits<double>::infinity(), 0};

  void add(std::complex<double> z) {
    const Complex x{z.real(), z.imag()};
    const bool below = x.re < all.re;
    const Complex low = below ? x : all, high = below ? all : x;
    const bool same = low.re == high.re && std::isinf(low.re);  // which would subtract to NaN
    all = high + simd::log1p(simd::exp(same ? Complex{0, 0} : low - high));
  }
  std::complex<double> value() const { return {all.re, all.im}; }
};

template <class T>
void logcumsumexp_cpu(const Tensor& self, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor input = aten::contiguous(self);
  const DimSlices s = dim_slices(input.sizes(), dim);
  const T* const from = input.data_as<T>();
  T* const to = out.data_as<T>();
  for_each_column_block(s, [&](int64_t o, int64_t column, int64_t columns) {
    using Wide = std::conditional_t<is_complex_type<T>, std::complex<double>, double>;
    std::conditional_t<is_complex_type<T>, ComplexLogSum, LogSum> running[kColumns];
    for (int64_t j = 0; j < s.size; ++j) {
      const int64_t row = (o * s.size + j) * s.inner + column;
      for (int64_t k = 0; k < columns; ++k) {
        running[k].add(static_cast<Wide>(static_cast<compute_type<T>>(from[row + k])));
        to[row + k] = static_cast<T>(static_cast<compute_type<T>>(running[k].value()));
      }
    }
  });
}

const auto logcumsumexp_registered = register_kernels<aten::ops::logcumsumexp, DeviceType::CPU>(
    []<class T>() { return &logcumsumexp_cpu<T>; }, "logcumsumexp_cpu");

}  // namespace
}  // namespace treadle::cpu
