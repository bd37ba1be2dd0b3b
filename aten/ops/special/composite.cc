// Special functions composed of other operators, and the aliases in the module `special` of
// operators of the main module.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "aten/engine/structured.h"
#include "aten/ops/_angle.h"
#include "aten/ops/add.h"
#include "aten/ops/angle.h"
#include "aten/ops/arange.h"
#include "aten/ops/clone.h"
#include "aten/ops/digamma.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/erf.h"
#include "aten/ops/erfc.h"
#include "aten/ops/erfinv.h"
#include "aten/ops/exp2.h"
#include "aten/ops/expm1.h"
#include "aten/ops/float_power.h"
#include "aten/ops/full_like.h"
#include "aten/ops/i0.h"
#include "aten/ops/igamma.h"
#include "aten/ops/igammac.h"
#include "aten/ops/imag.h"
#include "aten/ops/isreal.h"
#include "aten/ops/ldexp.h"
#include "aten/ops/lgamma.h"
#include "aten/ops/log1p.h"
#include "aten/ops/log_softmax.h"
#include "aten/ops/logit.h"
#include "aten/ops/logsumexp.h"
#include "aten/ops/mul.h"
#include "aten/ops/mvlgamma.h"
#include "aten/ops/ones_like.h"
#include "aten/ops/polygamma.h"
#include "aten/ops/pow.h"
#include "aten/ops/round.h"
#include "aten/ops/sigmoid.h"
#include "aten/ops/sinc.h"
#include "aten/ops/softmax.h"
#include "aten/ops/special_digamma.h"
#include "aten/ops/special_erf.h"
#include "aten/ops/special_erfc.h"
#include "aten/ops/special_erfinv.h"
#include "aten/ops/special_exp2.h"
#include "aten/ops/special_expit.h"
#include "aten/ops/special_expm1.h"
#include "aten/ops/special_gammainc.h"
#include "aten/ops/special_gammaincc.h"
#include "aten/ops/special_gammaln.h"
#include "aten/ops/special_i0.h"
#include "aten/ops/special_log1p.h"
#include "aten/ops/special_log_softmax.h"
#include "aten/ops/special_logit.h"
#include "aten/ops/special_logsumexp.h"
#include "aten/ops/special_multigammaln.h"
#include "aten/ops/special_polygamma.h"
#include "aten/ops/special_psi.h"
#include "aten/ops/special_round.h"
#include "aten/ops/special_sinc.h"
#include "aten/ops/special_softmax.h"
#include "aten/ops/special_xlogy.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/xlogy.h"

namespace treadle::composite {

Tensor angle(const Tensor& self) {
  return aten::_angle(is_integral(self.dtype(), true) ? aten::to(self, default_dtype()) : self);
}

Tensor isreal(const Tensor& self) {
  if (!self.is_complex()) return aten::ones_like(self, ScalarType::Bool);
  return aten::eq(aten::imag(self), Scalar(0));
}

Tensor ldexp(const Tensor& self, const Tensor& other) {
  const bool truth = other.dtype() == ScalarType::Bool;  // which has no powers
  const Tensor product =
      aten::mul(self, aten::pow(Scalar(2.0), truth ? aten::to(other, ScalarType::UInt8) : other));
  // Powers that are integers are of no dtype of their own.
  const bool own = is_floating(self.dtype()) && is_integral(other.dtype(), true);
  return own ? aten::to(product, self.dtype()) : product;
}

Tensor float_power(const Scalar& self, const Tensor& exponent) {
  const bool complex = self.is_complex() || exponent.is_complex();
  return aten::pow(self,
                   aten::to(exponent, complex ? ScalarType::Complex128 : ScalarType::Float64));
}

Tensor round_decimals(const Tensor& self, int64_t decimals) {
  if (is_integral(self.dtype(), true)) {
    check<ErrorKind::Runtime>(decimals == 0, OpName("round"),
                              "expected decimals = 0 for integers, got ", decimals);
    return aten::clone(self);
  }
  if (decimals == 0) return aten::round(self);
  // A product may leave the range of a 16-bit type where the result does not.
  const bool narrow = item_size(self.dtype()) == 2;
  const Tensor wide = narrow ? aten::to(self, ScalarType::Float32) : self;
  const Scalar scale(std::pow(10.0, static_cast<double>(std::abs(decimals))));
  const Tensor rounded = decimals > 0 ? aten::div(aten::round(aten::mul(wide, scale)), scale)
                                      : aten::mul(aten::round(aten::div(wide, scale)), scale);
  return narrow ? aten::to(rounded, self.dtype()) : rounded;
}

Tensor mvlgamma(const Tensor& self, int64_t p) {
  const double dimension = static_cast<double>(p);
  const ScalarType dtype = is_floating(self.dtype()) ? self.dtype() : default_dtype();
  const Tensor shifts = aten::arange(Scalar(0.5 - 0.5 * dimension), Scalar(0.25), Scalar(0.5),
                                     dtype, std::nullopt, self.device());
  const Tensor terms = aten::lgamma(aten::add(aten::unsqueeze(self, -1), shifts));
  const double constant = dimension * (dimension - 1) / 4 * std::log(std::numbers::pi);
  return aten::add(aten::sum(terms, IntList({-1})), Scalar(constant));
}

// ---- names of the module `special`
// -----------------------------------------------------------------------------------------

Tensor special_expm1(const Tensor& self) { return aten::expm1(self); }
Tensor special_exp2(const Tensor& self) { return aten::exp2(self); }
Tensor special_psi(const Tensor& self) { return aten::digamma(self); }
Tensor special_digamma(const Tensor& self) { return aten::digamma(self); }
Tensor special_gammaln(const Tensor& self) { return aten::lgamma(self); }
Tensor special_erf(const Tensor& self) { return aten::erf(self); }
Tensor special_erfc(const Tensor& self) { return aten::erfc(self); }
Tensor special_erfinv(const Tensor& self) { return aten::erfinv(self); }
Tensor special_i0(const Tensor& self) { return aten::i0(self); }
Tensor special_expit(const Tensor& self) { return aten::sigmoid(self); }
Tensor special_sinc(const Tensor& self) { return aten::sinc(self); }
Tensor special_log1p(const Tensor& self) { return aten::log1p(self); }
Tensor special_xlogy(const Tensor& self, const Tensor& other) { return aten::xlogy(self, other); }
Tensor special_xlogy(const Scalar& self, const Tensor& other) { return aten::xlogy(self, other); }
Tensor special_xlogy(const Tensor& self, const Scalar& other) { return aten::xlogy(self, other); }
Tensor special_logit(const Tensor& self, std::optional<double> eps) {
  return aten::logit(self, eps);
}
Tensor special_polygamma(int64_t n, const Tensor& self) { return aten::polygamma(n, self); }
Tensor special_logsumexp(const Tensor& self, IntList dim, bool keepdim) {
  return aten::logsumexp(self, dim, keepdim);
}
Tensor special_round(const Tensor& self, int64_t decimals) { return aten::round(self, decimals); }
Tensor special_gammainc(const Tensor& self, const Tensor& other) {
  return aten::igamma(self, other);
}
Tensor special_gammaincc(const Tensor& self, const Tensor& other) {
  return aten::igammac(self, other);
}
Tensor special_multigammaln(const Tensor& self, int64_t p) { return aten::mvlgamma(self, p); }
Tensor special_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return aten::softmax(self, dim, dtype);
}
Tensor special_log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return aten::log_softmax(self, dim, dtype);
}

}  // namespace treadle::composite
