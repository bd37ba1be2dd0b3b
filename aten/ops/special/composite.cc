// Special functions composed of other operators.
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
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/float_power.h"
#include "aten/ops/full_like.h"
#include "aten/ops/imag.h"
#include "aten/ops/isreal.h"
#include "aten/ops/ldexp.h"
#include "aten/ops/lgamma.h"
#include "aten/ops/mul.h"
#include "aten/ops/mvlgamma.h"
#include "aten/ops/ones_like.h"
#include "aten/ops/pow.h"
#include "aten/ops/round.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/unsqueeze.h"

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

}  // namespace treadle::composite
