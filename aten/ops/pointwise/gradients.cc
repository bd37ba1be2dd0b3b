// Powers, directions and the tanh approximation of gelu.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/pointwise/gradients.h"

#include <cmath>
#include <limits>

#include "aten/ops/abs.h"
#include "aten/ops/conj.h"
#include "aten/ops/log.h"
#include "aten/ops/pow.h"
#include "aten/ops/real.h"
#include "aten/ops/tanh.h"
#include "aten/ops/to.h"
#include "aten/ops/where.h"
#include "aten/ops/zeros_like.h"
#include "autograd/ops_syntax.h"

namespace treadle::autograd {

using namespace ops_syntax;  // NOLINT: infix operators, as in formulas

Tensor div_by_scalar(const Tensor& grad, const Scalar& divisor) { return grad / divisor.conj(); }

Tensor pow_scalar_backward(const Tensor& grad, const Tensor& base, const Scalar& exponent) {
  if (exponent.equal(0)) return aten::zeros_like(base);
  return grad * aten::conj(aten::pow(base, exponent - Scalar(1)) * exponent);
}

Tensor pow_backward_base(const Tensor& grad, const Tensor& base, const Tensor& exponent) {
  // 0 ** 0 is the only power whose slope has no value; elsewhere the exponent 0 makes it 0, and its
  // own derivative is 1 / base.
  const Tensor undefined = exponent == Scalar(0) && !(aten::abs(base) > Scalar(0));
  const Tensor safe = aten::where(undefined, Scalar(1), base);
  return grad * aten::conj(exponent * aten::pow(safe, exponent - Scalar(1)));
}

namespace {

// Whether 0 ** exponent is finite, so that it does not change with the exponent.
Tensor is_rising(const Tensor& exponent) {
  return (exponent.is_complex() ? aten::real(exponent) : exponent) >= Scalar(0);
}

}  // namespace

Tensor pow_backward_exponent(const Tensor& grad, const Tensor& base, const Tensor& exponent,
                             const Tensor& result) {
  // A complex power of a negative number has its complex logarithm.
  const Tensor wide =
      result.is_complex() && !base.is_complex() ? aten::to(base, result.dtype()) : base;
  // Where the power is flat the logarithm is infinite. The logarithm of 1 is 0.
  const Tensor flat = base == Scalar(0) && is_rising(exponent);
  return grad * aten::conj(result * aten::log(aten::where(flat, Scalar(1), wide)));
}

Tensor scalar_pow_backward(const Tensor& grad, const Scalar& base, const Tensor& exponent,
                           const Tensor& result) {
  if (base.equal(0)) {
    // Masked before and after the product: 0 times infinity would be NaN in the next derivative.
    const Tensor flat = is_rising(exponent);
    const Tensor falling = aten::where(flat, Scalar(1), result);
    const Scalar log(-std::numeric_limits<double>::infinity());
    return grad * aten::conj(aten::where(flat, Scalar(0), falling * log));
  }
  // The real power of a negative number has no derivative by the exponent: its logarithm is NaN.
  const bool complex = base.is_complex() || exponent.is_complex();
  const Scalar log = complex ? Scalar(std::log(base.to<std::complex<double>>()))
                             : Scalar(std::log(base.to<double>()));
  return grad * aten::conj(result * log);
}

Tensor logit_backward(const Tensor& grad, const Tensor& self, std::optional<double> eps) {
  const double low = eps.value_or(0);
  const Tensor outside = self < Scalar(low) || self > Scalar(1 - low);
  const Tensor inside = aten::where(outside, Scalar(0.5), self);
  const Scalar elsewhere(eps ? 0 : std::numeric_limits<double>::quiet_NaN());
  return grad * aten::where(outside, elsewhere, aten::reciprocal(inside * (Scalar(1) - inside)));
}

Tensor sgn_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  if (!self.is_complex()) return aten::zeros_like(grad);
  const Tensor zero = self == Scalar(0);
  const Tensor size = aten::where(zero, Scalar(1), aten::abs(self));
  const Tensor along = aten::real(aten::conj(result) * grad);
  return aten::where(zero, Scalar(0), (grad - result * along) / size);
}

Tensor gelu_tanh_backward(const Tensor& grad, const Tensor& self) {
  constexpr double kScale = 0.79788456080286535588, kCubic = 0.044715;  // sqrt(2 / pi)
  const Tensor square = self * self;
  const Tensor t = aten::tanh(self * (square * Scalar(kCubic) + Scalar(1)) * Scalar(kScale));
  const Tensor inner = (square * Scalar(3 * kCubic) + Scalar(1)) * Scalar(kScale);
  return grad * ((t + Scalar(1)) * Scalar(0.5) + self * (Scalar(1) - t * t) * inner * Scalar(0.5));
}

}  // namespace treadle::autograd
