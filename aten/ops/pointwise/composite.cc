// Pointwise operators composed of others: choices between two expressions, bounds that may be
// absent, activations.
//
// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <numbers>

#include "aten/engine/promotion.h"
#include "aten/engine/renamed_errors.h"
#include "aten/ops/_clamp.h"
#include "aten/ops/_conj.h"
#include "aten/ops/_conj_physical.h"
#include "aten/ops/_gelu.h"
#include "aten/ops/_gelu_tanh.h"
#include "aten/ops/_logaddexp.h"
#include "aten/ops/_nan_to_num.h"
#include "aten/ops/_nextafter.h"
#include "aten/ops/_nextafter_of_narrow.h"
#include "aten/ops/_trunc_divide.h"
#include "aten/ops/abs.h"
#include "aten/ops/add.h"
#include "aten/ops/all.h"
#include "aten/ops/allclose.h"
#include "aten/ops/celu.h"
#include "aten/ops/clamp.h"
#include "aten/ops/clamp_max.h"
#include "aten/ops/clamp_min.h"
#include "aten/ops/clip.h"
#include "aten/ops/clone.h"
#include "aten/ops/conj.h"
#include "aten/ops/conj_physical.h"
#include "aten/ops/deg2rad.h"
#include "aten/ops/div.h"
#include "aten/ops/elu.h"
#include "aten/ops/eq.h"
#include "aten/ops/equal.h"
#include "aten/ops/exp.h"
#include "aten/ops/float_power.h"
#include "aten/ops/floor_divide.h"
#include "aten/ops/gelu.h"
#include "aten/ops/gt.h"
#include "aten/ops/hardtanh.h"
#include "aten/ops/isclose.h"
#include "aten/ops/isfinite.h"
#include "aten/ops/isinf.h"
#include "aten/ops/isnan.h"
#include "aten/ops/isneginf.h"
#include "aten/ops/isposinf.h"
#include "aten/ops/item.h"
#include "aten/ops/le.h"
#include "aten/ops/log.h"
#include "aten/ops/log1p.h"
#include "aten/ops/log_sigmoid.h"
#include "aten/ops/logaddexp.h"
#include "aten/ops/logical_and.h"
#include "aten/ops/logical_or.h"
#include "aten/ops/logit.h"
#include "aten/ops/lt.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/mish.h"
#include "aten/ops/mul.h"
#include "aten/ops/nan_to_num.h"
#include "aten/ops/neg.h"
#include "aten/ops/nextafter.h"
#include "aten/ops/positive.h"
#include "aten/ops/pow.h"
#include "aten/ops/rad2deg.h"
#include "aten/ops/real.h"
#include "aten/ops/relu6.h"
#include "aten/ops/resolve_conj.h"
#include "aten/ops/rsub.h"
#include "aten/ops/selu.h"
#include "aten/ops/softplus.h"
#include "aten/ops/sub.h"
#include "aten/ops/tanh.h"
#include "aten/ops/to.h"
#include "aten/ops/view_as_complex.h"
#include "aten/ops/view_as_real.h"
#include "aten/ops/where.h"

namespace treadle::composite {
namespace {

// The compute type of operators of several steps: float32 for 16-bit types, whose results are
// rounded once, at the end.
Tensor unrounded(const Tensor& self) {
  const bool short_type =
      self.dtype() == ScalarType::Float16 || self.dtype() == ScalarType::BFloat16;
  return short_type ? aten::to(self, ScalarType::Float32) : self;
}

template <class Other>
Tensor rounded_quotient(const Tensor& self, const Other& other,
                        std::optional<std::string_view> rounding_mode) {
  if (!rounding_mode) return aten::div(self, other);
  if (*rounding_mode == "floor") return aten::floor_divide(self, other);
  check<ErrorKind::Runtime>(*rounding_mode == "trunc", OpName("div"),
                            "expected rounding_mode None, 'trunc' or 'floor', got '",
                            *rounding_mode, "'");
  return aten::_trunc_divide(self, other);
}

ScalarType power_type(bool is_complex) {
  return is_complex ? ScalarType::Complex128 : ScalarType::Float64;
}

// The ends of a floating dtype's finite range.
double largest(ScalarType t) {
  switch (t) {
    case ScalarType::Float16:
      return 65504.0;
    case ScalarType::BFloat16:
      return 3.3895313892515355e38;
    case ScalarType::Float64:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

// `value` as an element of `dtype`: an integer dtype takes the integer part. An error where it
// would lose its imaginary part or its size.
Scalar as_element_of(const char* op, ScalarType dtype, const Scalar& value) {
  if (is_stored(dtype)) return value;  // rounded where the element is written
  Scalar element;
  visit_type(AllTypes(), dtype, [&]<class T>() { element = Scalar(value.checked_to<T>(op)); });
  return element;
}

void require_mask(const char* op, const Tensor& mask) {
  check<ErrorKind::Runtime>(mask.dtype() == ScalarType::Bool, OpName(op),
                            "expected a mask of dtype bool, got ", name_of(mask.dtype()));
}

}  // namespace

Tensor div_mode(const Tensor& self, const Tensor& other,
                std::optional<std::string_view> rounding_mode) {
  return rounded_quotient(self, other, rounding_mode);
}
Tensor div_mode(const Tensor& self, const Scalar& other,
                std::optional<std::string_view> rounding_mode) {
  return rounded_quotient(self, other, rounding_mode);
}

Tensor float_power(const Tensor& self, const Tensor& exponent) {
  const ScalarType t = power_type(self.is_complex() || exponent.is_complex());
  return aten::pow(aten::to(self, t), aten::to(exponent, t));
}
Tensor float_power(const Tensor& self, const Scalar& exponent) {
  return aten::pow(aten::to(self, power_type(self.is_complex() || exponent.is_complex())),
                   exponent);
}

// 16-bit elements are computed in float32, whose steps are smaller by a power of two. The steps of
// float16's subnormal numbers have one size.
Tensor nextafter(const Tensor& self, const Tensor& other) {
  Promotion promotion;
  promotion.add(self);
  promotion.add(other);
  const ScalarType dtype = promotion.result();
  if (dtype == ScalarType::Float16 || dtype == ScalarType::BFloat16) {
    const bool half = dtype == ScalarType::Float16;
    return aten::_nextafter_of_narrow(self, other, half ? 0x1p13 : 0x1p16,
                                      half ? 0x1p-24 : 0x1p-133, largest(dtype));
  }
  return renamed("nextafter", "_nextafter", [&] { return aten::_nextafter(self, other); });
}

// For complex numbers the factor of the larger one is taken out. Equal infinities have no
// difference.
Tensor logaddexp(const Tensor& self, const Tensor& other) {
  if (!self.is_complex() && !other.is_complex())
    return renamed("logaddexp", "_logaddexp", [&] { return aten::_logaddexp(self, other); });
  const Tensor x = aten::real(self), y = aten::real(other);
  const Tensor below = aten::lt(x, y);
  const Tensor low = aten::where(below, self, other), high = aten::where(below, other, self);
  const Tensor same = aten::logical_and(aten::eq(x, y), aten::isinf(x));
  const Tensor rest = aten::masked_fill(aten::sub(low, high), same, Scalar(0));
  return aten::add(high, aten::log1p(aten::exp(rest)));
}

Tensor conj(const Tensor& self) { return self.is_complex() ? aten::_conj(self) : self; }
Tensor conj_physical(const Tensor& self) {
  return self.is_complex() ? aten::_conj_physical(self) : self;
}
Tensor positive(const Tensor& self) { return self; }
Tensor deg2rad(const Tensor& self) { return aten::mul(self, Scalar(std::numbers::pi / 180)); }
Tensor rad2deg(const Tensor& self) { return aten::mul(self, Scalar(180 / std::numbers::pi)); }

// ---- choosing -----------------------------------------------------------------------------------

Tensor clamp(const Tensor& self, const std::optional<Scalar>& min,
             const std::optional<Scalar>& max) {
  check<ErrorKind::Runtime>(min || max, OpName("clamp"),
                            "expected at least one of min and max, got None for both");
  if (!max) return aten::clamp_min(self, *min);
  if (!min) return aten::clamp_max(self, *max);
  return renamed("clamp", "_clamp", [&] { return aten::_clamp(self, *min, *max); });
}
Tensor clamp_Tensor(const Tensor& self, const Tensor& min, const Tensor& max) {
  check<ErrorKind::Runtime>(min.defined() || max.defined(), OpName("clamp"),
                            "expected at least one of min and max, got None for both");
  if (!max.defined()) return aten::clamp_min(self, min);
  if (!min.defined()) return aten::clamp_max(self, max);
  return aten::clamp_max(aten::clamp_min(self, min), max);
}

Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value) {
  require_mask("masked_fill", mask);
  return aten::where(mask, as_element_of("masked_fill", self.dtype(), value), self);
}
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  require_mask("masked_fill", mask);
  check<ErrorKind::Runtime>(value.dim() == 0, OpName("masked_fill"),
                            "expected a value with 0 dimensions, got shape ", value.sizes());
  if (value.is_complex() && !self.is_complex())
    return composite::masked_fill(self, mask, aten::item(value));  // checked to be a real number
  return aten::where(mask, aten::to(value, self.dtype()), self);
}

Tensor nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (is_integral(self.dtype(), true)) return aten::clone(self);
  if (self.is_complex()) {
    const Tensor parts = aten::view_as_real(aten::resolve_conj(self));
    return aten::view_as_complex(aten::nan_to_num(parts, nan, posinf, neginf));
  }
  const double end = largest(self.dtype());
  return aten::_nan_to_num(self, nan.value_or(0), posinf.value_or(end), neginf.value_or(-end));
}

// ---- comparison ---------------------------------------------------------------------------------

Tensor isposinf(const Tensor& self) {
  return aten::logical_and(aten::isinf(self), aten::gt(self, Scalar(0)));
}
Tensor isneginf(const Tensor& self) {
  return aten::logical_and(aten::isinf(self), aten::lt(self, Scalar(0)));
}

Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  check<ErrorKind::Runtime>(self.dtype() == other.dtype(), OpName("isclose"),
                            "expected tensors of one dtype, got ", name_of(self.dtype()), " and ",
                            name_of(other.dtype()));
  const bool exact = is_integral(self.dtype(), true);
  Tensor close = aten::eq(self, other);
  if (equal_nan && !exact)
    close = aten::logical_or(close, aten::logical_and(aten::isnan(self), aten::isnan(other)));
  if (rtol == 0 && atol == 0) return close;
  const Tensor wide = exact ? aten::to(other, default_dtype()) : other;
  const Tensor allowed = aten::add(aten::abs(aten::mul(wide, Scalar(rtol))), Scalar(atol));
  const Tensor error = aten::abs(aten::sub(self, wide));
  return aten::logical_or(close,
                          aten::logical_and(aten::isfinite(error), aten::le(error, allowed)));
}
bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return aten::item(aten::all(aten::isclose(self, other, rtol, atol, equal_nan))).to<bool>();
}
bool equal(const Tensor& self, const Tensor& other) {
  return self.sizes() == other.sizes() && aten::item(aten::all(aten::eq(self, other))).to<bool>();
}

// ---- activations --------------------------------------------------------------------------------

Tensor gelu(const Tensor& self, std::string_view approximate) {
  if (approximate == "none") return aten::_gelu(self);
  check<ErrorKind::Runtime>(approximate == "tanh", OpName("gelu"),
                            "expected approximate 'none' or 'tanh', got '", approximate, "'");
  return aten::_gelu_tanh(self);
}
Tensor selu(const Tensor& self) {
  return aten::elu(self, Scalar(1.6732632423543772848), Scalar(1.0507009873554804934));
}
Tensor celu(const Tensor& self, const Scalar& alpha) {
  return aten::elu(self, alpha, Scalar(1.0), Scalar(1 / alpha.to<double>()));
}
Tensor log_sigmoid(const Tensor& self) {
  // Beyond 40, log(1 + exp(x)) is x in every type.
  return aten::neg(aten::softplus(aten::neg(self), 1, 40));
}
Tensor relu6(const Tensor& self) { return aten::hardtanh(self, Scalar(0), Scalar(6)); }
Tensor mish(const Tensor& self) {
  const Tensor x = unrounded(self);
  return aten::to(aten::mul(x, aten::tanh(aten::softplus(x))), self.dtype());
}
Tensor logit(const Tensor& self, std::optional<double> eps) {
  const bool truth = self.dtype() == ScalarType::Bool;  // which has no difference
  Tensor x = truth ? aten::to(self, default_dtype()) : unrounded(self);
  const bool shorter = !truth && x.dtype() != self.dtype();
  if (eps) {  // the lower bound wins where the two are exchanged
    const Scalar low(*eps), high(1 - *eps);
    x = aten::where(aten::lt(x, low), low, aten::clamp_max(x, high));
  }
  const Tensor y = aten::log(aten::div(x, aten::rsub(x, Scalar(1))));
  return shorter ? aten::to(y, self.dtype()) : y;
}

}  // namespace treadle::composite
