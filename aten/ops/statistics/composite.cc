// Forms of var and std, softmax's conversions, norms, logsumexp and diff.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "aten/ops/_log_softmax.h"
#include "aten/ops/_safe_softmax.h"
#include "aten/ops/_softmax.h"
#include "aten/ops/_sum_of_magnitudes.h"
#include "aten/ops/_sum_of_squares.h"
#include "aten/ops/abs.h"
#include "aten/ops/add.h"
#include "aten/ops/all.h"
#include "aten/ops/amax.h"
#include "aten/ops/amin.h"
#include "aten/ops/cat.h"
#include "aten/ops/clone.h"
#include "aten/ops/diff.h"
#include "aten/ops/eq.h"
#include "aten/ops/exp.h"
#include "aten/ops/linalg__powsum.h"
#include "aten/ops/linalg_vector_norm.h"
#include "aten/ops/log.h"
#include "aten/ops/log_softmax.h"
#include "aten/ops/logsumexp.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/mean.h"
#include "aten/ops/mul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/ne.h"
#include "aten/ops/norm.h"
#include "aten/ops/pow.h"
#include "aten/ops/real.h"
#include "aten/ops/reshape.h"
#include "aten/ops/softmax.h"
#include "aten/ops/sqrt.h"
#include "aten/ops/std.h"
#include "aten/ops/std_mean.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/var.h"
#include "aten/ops/var_mean.h"

namespace treadle::composite {
namespace {

using Correction = std::optional<Scalar>;
Correction correction_of(bool unbiased) { return Scalar(unbiased ? 1 : 0); }

constexpr double kInf = std::numeric_limits<double>::infinity();

// The input of softmax and log_softmax's computation.
Tensor softmax_input(const char* op, const Tensor& self, int64_t dim,
                     std::optional<ScalarType> dtype) {
  wrap_dim(op, dim, self.dim());
  const ScalarType type = dtype.value_or(self.dtype());
  return type == self.dtype() ? self : aten::to(self, type);
}

// The norm of a tensor of a wide enough floating or complex dtype.
Tensor wide_norm(const Tensor& self, double p, OptionalIntList dim, bool keepdim) {
  if (!is_complex(self.dtype())) {
    if (p == 2) return aten::sqrt(aten::_sum_of_squares(self, dim, keepdim));
    if (p == 1) return aten::_sum_of_magnitudes(self, dim, keepdim);
  }
  const Tensor magnitude = aten::abs(self);
  if (p == 2) return aten::sqrt(aten::sum(aten::mul(magnitude, magnitude), dim, keepdim));
  if (p == 1) return aten::sum(magnitude, dim, keepdim);
  if (p == 0) return aten::sum(aten::to(aten::ne(magnitude, 0), magnitude.dtype()), dim, keepdim);
  const IntList dims = dim.value_or(IntList());
  if (p == kInf) return aten::amax(magnitude, dims, keepdim);
  if (p == -kInf) return aten::amin(magnitude, dims, keepdim);
  return aten::pow(aten::sum(aten::pow(magnitude, p), dim, keepdim), 1 / p);
}

// The result of `compute` for the tensor in the requested dtype. The squares of 16-bit floats
// overflow early, so it receives them in float32.
template <class F>
Tensor on_wide(const char* op, const Tensor& self, std::optional<ScalarType> dtype, F&& compute) {
  const ScalarType type = dtype.value_or(self.dtype());
  check<ErrorKind::Runtime>(is_floating(type) || is_complex(type), OpName(op),
                            "expected a floating or complex dtype, got ", type);
  const bool narrow = type == ScalarType::Float16 || type == ScalarType::BFloat16;
  const ScalarType wide = narrow ? ScalarType::Float32 : type;
  const Tensor result = compute(wide == self.dtype() ? self : aten::to(self, wide));
  return narrow ? aten::to(result, type) : result;
}

}  // namespace

Tensor var_all(const Tensor& self, bool unbiased) {
  return aten::var(self, OptionalIntList(), correction_of(unbiased), false);
}
Tensor var_dim(const Tensor& self, OptionalIntList dim, bool unbiased, bool keepdim) {
  return aten::var(self, dim, correction_of(unbiased), keepdim);
}
Tensor std_all(const Tensor& self, bool unbiased) {
  return aten::std(self, OptionalIntList(), correction_of(unbiased), false);
}
Tensor std_dim(const Tensor& self, OptionalIntList dim, bool unbiased, bool keepdim) {
  return aten::std(self, dim, correction_of(unbiased), keepdim);
}

std::tuple<Tensor, Tensor> var_mean_correction(const Tensor& self, OptionalIntList dim,
                                               const Correction& correction, bool keepdim) {
  return {aten::var(self, dim, correction, keepdim), aten::mean(self, dim, keepdim)};
}
std::tuple<Tensor, Tensor> var_mean_all(const Tensor& self, bool unbiased) {
  return aten::var_mean(self, std::nullopt, correction_of(unbiased), false);
}
std::tuple<Tensor, Tensor> var_mean_dim(const Tensor& self, OptionalIntList dim, bool unbiased,
                                        bool keepdim) {
  return aten::var_mean(self, dim, correction_of(unbiased), keepdim);
}
std::tuple<Tensor, Tensor> std_mean_correction(const Tensor& self, OptionalIntList dim,
                                               const Correction& correction, bool keepdim) {
  return {aten::std(self, dim, correction, keepdim), aten::mean(self, dim, keepdim)};
}
std::tuple<Tensor, Tensor> std_mean_all(const Tensor& self, bool unbiased) {
  return aten::std_mean(self, std::nullopt, correction_of(unbiased), false);
}
std::tuple<Tensor, Tensor> std_mean_dim(const Tensor& self, OptionalIntList dim, bool unbiased,
                                        bool keepdim) {
  return aten::std_mean(self, dim, correction_of(unbiased), keepdim);
}

Tensor logsumexp(const Tensor& self, IntList dim, bool keepdim) {
  const Tensor input = is_integral(self.dtype(), true) ? aten::to(self, default_dtype()) : self;
  const OptionalIntList dims(dim);
  if (input.numel() == 0) return aten::log(aten::sum(aten::exp(input), dims, keepdim));
  const Tensor largest = aten::amax(input.is_complex() ? aten::real(input) : input, dim, true);
  const Tensor shift = aten::masked_fill(largest, aten::eq(aten::abs(largest), kInf), 0);
  const Tensor sum = aten::sum(aten::exp(aten::sub(input, shift)), dims, keepdim);
  return aten::add(aten::log(sum), aten::reshape(shift, sum.sizes()));
}

Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return aten::_softmax(softmax_input("softmax", self, dim, dtype), dim, false);
}
Tensor _safe_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  const Tensor none = aten::all(aten::eq(self, Scalar(-kInf)), dim, true);
  // Filled elements get no gradient, also not the NaN of a row without a finite number.
  const Tensor result = aten::softmax(aten::masked_fill(self, none, Scalar(0)), dim, dtype);
  return aten::masked_fill(result, none, Scalar(0));
}
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return aten::_log_softmax(softmax_input("log_softmax", self, dim, dtype), dim, false);
}

Tensor linalg_vector_norm(const Tensor& self, const Scalar& ord, OptionalIntList dim, bool keepdim,
                          std::optional<ScalarType> dtype) {
  check<ErrorKind::Runtime>(!ord.is_complex(), OpName("linalg_vector_norm"),
                            "expected a real ord, got ord = ", ord);
  return on_wide("linalg_vector_norm", self, dtype, [&](const Tensor& wide) {
    return wide_norm(wide, ord.to<double>(), dim, keepdim);
  });
}

Tensor linalg__powsum(const Tensor& self, const Scalar& ord, OptionalIntList dim, bool keepdim,
                      std::optional<ScalarType> dtype) {
  const double p = ord.is_complex() ? 0 : ord.to<double>();
  check<ErrorKind::Runtime>(p > 0 && p < kInf, OpName("linalg__powsum"),
                            "expected a finite ord above 0, got ord = ", ord);
  return on_wide("linalg__powsum", self, dtype, [&](const Tensor& wide) {
    // Smooth at 0, unlike the magnitude's.
    if (p == 2 && !is_complex(wide.dtype())) return aten::sum(aten::mul(wide, wide), dim, keepdim);
    const Tensor magnitude = aten::abs(wide);
    if (p == 1) return aten::sum(magnitude, dim, keepdim);
    const Tensor powers = p == 2 ? aten::mul(magnitude, magnitude) : aten::pow(magnitude, p);
    return aten::sum(powers, dim, keepdim);
  });
}

Tensor norm_all(const Tensor& self, const Scalar& p) { return aten::linalg_vector_norm(self, p); }

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend,
            const Tensor& append) {
  check<ErrorKind::Runtime>(self.dim() > 0, OpName("diff"),
                            "expected a tensor with at least 1 dimension, got a 0-dim one");
  const int64_t d = wrap_dim("diff", dim, self.dim());
  if (n == 0) return aten::clone(self);  // no difference: nothing is added either
  Tensor result = self;
  if (prepend.defined() || append.defined()) {
    std::vector<Tensor> parts;
    for (const Tensor& part : {prepend, self, append}) {
      if (part.defined()) parts.push_back(part);
    }
    result = aten::cat(parts, d);
  }
  n = std::min(n, result.size(d));
  if (n == 0) return aten::clone(result);
  for (; n > 0; --n) {
    const int64_t count = result.size(d) - 1;
    const Tensor upper = aten::narrow(result, d, 1, count);
    const Tensor lower = aten::narrow(result, d, 0, count);
    result = self.dtype() == ScalarType::Bool ? aten::ne(upper, lower) : aten::sub(upper, lower);
  }
  return result;
}

}  // namespace treadle::composite
