// Slopes of special functions. A divisor that is zero is replaced before it divides: a NaN that is
// chosen away in the value would still reach the derivative.
#include "autograd/formulas_special.h"

#include <cmath>
#include <numbers>

#include "aten/ops/_dirichlet_grad.h"
#include "aten/ops/abs.h"
#include "aten/ops/cos.h"
#include "aten/ops/exp.h"
#include "aten/ops/expand.h"
#include "aten/ops/i0.h"
#include "aten/ops/lgamma.h"
#include "aten/ops/log.h"
#include "aten/ops/sgn.h"
#include "aten/ops/special_bessel_j0.h"
#include "aten/ops/special_i0e.h"
#include "aten/ops/special_zeta.h"
#include "aten/ops/square.h"
#include "aten/ops/sum.h"
#include "aten/ops/where.h"
#include "aten/ops/zeros_like.h"
#include "autograd/ops_syntax.h"

namespace treadle::autograd {

using namespace ops_syntax;  // NOLINT: infix operators, as in formulas

namespace {

Tensor without_zero(const Tensor& t) { return aten::where(t == Scalar(0), Scalar(1), t); }

}  // namespace

Tensor i1_slope(const Tensor& self, const Tensor& result) {
  const Tensor slope = aten::i0(self) - result / without_zero(self);
  return aten::where(self == Scalar(0), Scalar(0.5), slope);
}

Tensor i1e_slope(const Tensor& self, const Tensor& result) {
  const Tensor divisor = without_zero(self);
  const Tensor slope = aten::special_i0e(self) - result * aten::sgn(self) - result / divisor;
  return aten::where(self == Scalar(0), Scalar(0.5), slope);
}

Tensor bessel_j1_slope(const Tensor& self, const Tensor& result) {
  const Tensor slope = aten::special_bessel_j0(self) - result / without_zero(self);
  return aten::where(self == Scalar(0), Scalar(0.5), slope);
}

Tensor spherical_bessel_j0_slope(const Tensor& self, const Tensor& result) {
  const Tensor slope = (aten::cos(self) - result) / without_zero(self);
  return aten::where(self == Scalar(0), Scalar(0), slope);
}

Tensor sinc_slope(const Tensor& self, const Tensor& result) {
  const Tensor slope = (aten::cos(self * Scalar(std::numbers::pi)) - result) / without_zero(self);
  return aten::where(self == Scalar(0), Scalar(0), slope);
}

Tensor igamma_slope(const Tensor& order, const Tensor& x) {
  return aten::exp((order - Scalar(1)) * aten::log(x) - x - aten::lgamma(order));
}

Tensor xlogy_backward_self(const Tensor& grad, const Tensor& self, const Scalar& other) {
  const Tensor scaled = grad * Scalar(std::log(other.to<double>()));
  return other.to<double>() > 0 ? scaled : aten::where(self == Scalar(0), Scalar(0), scaled);
}

Tensor xlog1py_backward_self(const Tensor& grad, const Tensor& self, const Scalar& other) {
  const Tensor scaled = grad * Scalar(std::log1p(other.to<double>()));
  return other.to<double>() > -1 ? scaled : aten::where(self == Scalar(0), Scalar(0), scaled);
}

Tensor zeta_backward_other(const Tensor& grad, const Scalar& self, const Tensor& other) {
  const double s = self.to<double>();
  return grad * aten::special_zeta(Scalar(s + 1), other) * Scalar(-s);
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
