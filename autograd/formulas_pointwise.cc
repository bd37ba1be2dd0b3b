// Powers, directions and the smooth activation by a hyperbolic tangent.
#include "autograd/formulas_pointwise.h"

#include "aten/ops/abs.h"
#include "aten/ops/conj.h"
#include "aten/ops/log.h"
#include "aten/ops/pow.h"
#include "aten/ops/real.h"
#include "aten/ops/tanh.h"
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
  const Tensor slope = aten::conj(exponent * aten::pow(base, exponent - Scalar(1)));
  return aten::where(exponent == Scalar(0), Scalar(0), grad * slope);
}

Tensor pow_backward_exponent(const Tensor& grad, const Tensor& base, const Tensor& exponent,
                             const Tensor& result) {
  // Where base is 0 and the real part of the exponent is not negative the power is flat; the
  // logarithm is infinite there.
  const Tensor rising =
      exponent.is_complex() ? aten::real(exponent) >= Scalar(0) : exponent >= Scalar(0);
  const Tensor flat = base == Scalar(0) && rising;
  const Tensor slope = aten::conj(result * aten::log(aten::where(flat, Scalar(1), base)));
  return aten::where(flat, Scalar(0), grad * slope);
}

Tensor scalar_pow_backward(const Tensor& grad, const Scalar& base, const Tensor& exponent,
                           const Tensor& result) {
  if (base.equal(0)) {
    const Tensor rising =
        exponent.is_complex() ? aten::real(exponent) >= Scalar(0) : exponent >= Scalar(0);
    return aten::where(
        rising, Scalar(0),
        grad * aten::conj(result * Scalar(-std::numeric_limits<double>::infinity())));
  }
  const std::complex<double> log = std::log(base.to<std::complex<double>>());
  const bool real = !base.is_complex() && base.to<double>() > 0;
  return grad * aten::conj(result * (real                    ? Scalar(log.real())
                                     : exponent.is_complex() ? Scalar(log)
                                                             : Scalar(log.real())));
}

Tensor sgn_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  if (!self.is_complex()) return aten::zeros_like(grad);
  const Tensor along = aten::real(aten::conj(result) * grad);
  return aten::where(self == Scalar(0), Scalar(0), (grad - result * along) / aten::abs(self));
}

Tensor gelu_tanh_backward(const Tensor& grad, const Tensor& self) {
  constexpr double kScale = 0.79788456080286535588, kCubic = 0.044715;  // sqrt(2 / pi)
  const Tensor square = self * self;
  const Tensor t = aten::tanh(self * (square * Scalar(kCubic) + Scalar(1)) * Scalar(kScale));
  const Tensor inner = (square * Scalar(3 * kCubic) + Scalar(1)) * Scalar(kScale);
  return grad * ((t + Scalar(1)) * Scalar(0.5) + self * (Scalar(1) - t * t) * inner * Scalar(0.5));
}

}  // namespace treadle::autograd
