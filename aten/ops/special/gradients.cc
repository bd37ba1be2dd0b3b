// Derivatives of special functions. A zero divisor is replaced before the division, because a NaN
// that the value discards would still reach the derivative.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/special/gradients.h"

#include <cmath>
#include <numbers>

#include "aten/ops/_dirichlet_grad.h"
#include "aten/ops/abs.h"
#include "aten/ops/cos.h"
#include "aten/ops/exp.h"
#include "aten/ops/expand.h"
#include "aten/ops/i0.h"
#include "aten/ops/sgn.h"
#include "aten/ops/special_bessel_j0.h"
#include "aten/ops/special_i0e.h"
#include "aten/ops/square.h"
#include "aten/ops/sum.h"
#include "aten/ops/where.h"
#include "aten/ops/zeros_like.h"
#include "autograd/ops_syntax.h"

namespace treadle::autograd {

using namespace ops_syntax;  // NOLINT: infix operators, as in formulas

namespace {

Tensor without_zero(const Tensor& t) { return aten::where(t == Scalar(0), Scalar(1), t); }

// Note [Slopes near zero] These slopes are f(x) / x with a limit at zero. Near it a power series
// stands for the quotient: it has no digits to cancel, and its own derivatives are right at zero,
// where a limit put in by hand would be a constant. Each branch receives an argument at which it
// and its derivatives are finite.
template <class Series, class Quotient>
Tensor joined_slope(const Tensor& self, double limit, Series&& series, Quotient&& quotient) {
  const Tensor near = aten::abs(self) < Scalar(limit);
  return aten::where(near, series(aten::where(near, self, Scalar(0))),
                     quotient(aten::where(near, Scalar(1), self)));
}

constexpr int kTerms = 9;  // enough for float64 up to 0.5

Tensor polynomial(const double (&terms)[kTerms], const Tensor& t) {
  Tensor sum = t * Scalar(terms[kTerms - 1]) + Scalar(terms[kTerms - 2]);
  for (int k = kTerms - 2; k-- > 0;) sum = sum * t + Scalar(terms[k]);
  return sum;
}

// The derivative of i1 (sign 1) or of j1 (sign -1):
// sum over k of sign^k (2k + 1) / (2 k! (k + 1)!) (x^2 / 4)^k.
Tensor bessel_series(const Tensor& x, int sign) {
  double terms[kTerms];
  double factor = 0.5;  // sign^k / (2 k! (k + 1)!)
  for (int k = 0; k < kTerms; ++k) {
    terms[k] = factor * (2 * k + 1);
    factor *= sign / ((k + 1.0) * (k + 2.0));
  }
  return polynomial(terms, x * x * Scalar(0.25));
}

// The derivative of sin(x) / x: sum over n > 0 of (-1)^n 2n / (2n + 1)! x^(2n - 1).
Tensor spherical_series(const Tensor& x) {
  double terms[kTerms];
  double factor = -1.0 / 6;  // (-1)^n / (2n + 1)!
  for (int k = 0; k < kTerms; ++k) {
    const int n = k + 1;
    terms[k] = factor * 2 * n;
    factor /= -(2.0 * n + 2) * (2 * n + 3);
  }
  return polynomial(terms, x * x) * x;
}

}  // namespace

Tensor i1_slope(const Tensor& self, const Tensor& result) {
  return joined_slope(
      self, 0.5, [](const Tensor& near) { return bessel_series(near, 1); },
      [&](const Tensor& far) { return aten::i0(self) - result / far; });
}

Tensor i1e_slope(const Tensor& self, const Tensor& result) {
  const Tensor turn = result * aten::sgn(self);
  return joined_slope(
             self, 0.5,
             [](const Tensor& near) {
               return aten::exp(-aten::abs(near)) * bessel_series(near, 1);
             },
             [&](const Tensor& far) { return aten::special_i0e(self) - result / far; }) -
         turn;
}

Tensor bessel_j1_slope(const Tensor& self, const Tensor& result) {
  return joined_slope(
      self, 0.5, [](const Tensor& near) { return bessel_series(near, -1); },
      [&](const Tensor& far) { return aten::special_bessel_j0(self) - result / far; });
}

Tensor spherical_bessel_j0_slope(const Tensor& self, const Tensor& result) {
  return joined_slope(self, 0.5, spherical_series,
                      [&](const Tensor& far) { return (aten::cos(self) - result) / far; });
}

Tensor sinc_slope(const Tensor& self, const Tensor& result) {
  const Scalar pi(std::numbers::pi);
  return joined_slope(
      self, 0.15, [&](const Tensor& near) { return spherical_series(near * pi) * pi; },
      [&](const Tensor& far) { return (aten::cos(self * pi) - result) / far; });
}

Tensor xlogy_backward_self(const Tensor& grad, const Tensor& self, const Scalar& other) {
  const Tensor scaled = grad * Scalar(std::log(other.to<double>()));
  return other.to<double>() > 0 ? scaled : aten::where(self == Scalar(0), Scalar(0), scaled);
}

Tensor xlog1py_backward_self(const Tensor& grad, const Tensor& self, const Scalar& other) {
  const Tensor scaled = grad * Scalar(std::log1p(other.to<double>()));
  return other.to<double>() > -1 ? scaled : aten::where(self == Scalar(0), Scalar(0), scaled);
}

// A coordinate moves as a beta number does; the others shrink in proportion.
Tensor sample_dirichlet_backward(const Tensor& grad, const Tensor& concentration,
                                 const Tensor& result) {
  const int64_t last[] = {-1};
  const Tensor total = aten::expand(aten::sum(concentration, last, true), concentration.sizes());
  const Tensor centered = grad - aten::sum(grad * result, last, true);
  return aten::_dirichlet_grad(result, concentration, total) * centered;
}

Tensor angle_backward(const Tensor& grad, const Tensor& self) {
  if (!self.is_complex()) return aten::zeros_like(grad);
  const Tensor across = without_zero(self) * Scalar(std::complex<double>(0, 1));
  const Tensor size = aten::square(aten::abs(without_zero(self)));
  return aten::where(self == Scalar(0), Scalar(0), grad * across / size);
}

}  // namespace treadle::autograd
