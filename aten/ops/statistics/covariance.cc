// cov and corrcoef: the covariance and correlation of a matrix's rows over its columns.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/all.h"
#include "aten/ops/clamp.h"
#include "aten/ops/complex.h"
#include "aten/ops/conj.h"
#include "aten/ops/corrcoef.h"
#include "aten/ops/cov.h"
#include "aten/ops/diagonal.h"
#include "aten/ops/div.h"
#include "aten/ops/ge.h"
#include "aten/ops/imag.h"
#include "aten/ops/item.h"
#include "aten/ops/matmul.h"
#include "aten/ops/mul.h"
#include "aten/ops/real.h"
#include "aten/ops/reshape.h"
#include "aten/ops/sqrt.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/t.h"
#include "aten/ops/to.h"
#include "aten/ops/unsqueeze.h"

namespace treadle::composite {
namespace {

void check_weights(const char* name, const Tensor& weights, const Tensor& self, bool integers) {
  if (!weights.defined()) return;
  const int64_t observations = self.dim() == 0 ? 1 : self.sizes().back();
  check<ErrorKind::Runtime>(weights.dim() <= 1 && weights.numel() == observations, OpName("cov"),
                            "expected ", name, " with an entry for each of ", observations,
                            " observations, got shape ", weights.sizes());
  check<ErrorKind::Runtime>(
      integers ? is_integral(weights.dtype(), false) : weights.is_floating_point(), OpName("cov"),
      "expected ", name, " of ", integers ? "an integer" : "a floating", " dtype, got ",
      weights.dtype());
  check<ErrorKind::Runtime>(weights.is_meta() || weights.numel() == 0 ||
                                aten::item(aten::all(aten::ge(weights, Scalar(0)))).to<bool>(),
                            OpName("cov"), "expected ", name, " >= 0, got one that is not");
}

Tensor total(const Tensor& t, int64_t dim) {
  return aten::sum(t, OptionalIntList(IntList(&dim, 1)), true);
}

}  // namespace

Tensor cov(const Tensor& self, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  check_weights("fweights", fweights, self, true);
  check_weights("aweights", aweights, self, false);
  Tensor rows = self.dim() == 2 ? self : aten::reshape(self, {1, -1});
  if (is_integral(rows.dtype(), true)) rows = aten::to(rows, default_dtype());
  Tensor weights;  // (1, observations), in the dtype that both have together
  if (fweights.defined()) weights = aten::reshape(fweights, {1, -1});
  Tensor own;
  if (aweights.defined()) {
    own = aten::reshape(aweights, {1, -1});
    weights = weights.defined() ? aten::mul(weights, own) : own;
  }
  Tensor mean, divisor;
  if (weights.defined()) {
    const Tensor sum = aten::sum(weights);
    check<ErrorKind::Runtime>(sum.is_meta() || !aten::item(sum).equal(0), OpName("cov"),
                              "expected weights with a sum > 0, got one of 0");
    mean = aten::div(total(aten::mul(rows, weights), 1), sum);
    // Weights of importance count as fewer observations the more they differ.
    const Tensor lost =
        own.defined() ? aten::div(aten::sum(aten::mul(weights, own)), sum) : Tensor();
    divisor = lost.defined() ? aten::sub(sum, aten::mul(lost, Scalar(correction)))
                             : aten::sub(sum, Scalar(correction));
  } else {
    const Scalar count(static_cast<double>(rows.size(1)));
    mean = aten::div(total(rows, 1), count);
  }
  const Tensor centered = aten::sub(rows, mean);
  const Tensor other =
      aten::conj(aten::t(weights.defined() ? aten::mul(centered, weights) : centered));
  const Tensor products = aten::matmul(centered, other);
  const Tensor result =
      divisor.defined()
          ? aten::div(products, aten::clamp(divisor, Scalar(0)))
          : aten::div(products, Scalar(std::max(0.0, static_cast<double>(rows.size(1)) -
                                                         static_cast<double>(correction))));
  // One variable has one variance, a number.
  return rows.size(0) == 1 ? aten::reshape(result, {}) : result;
}

Tensor corrcoef(const Tensor& self) {
  const Tensor c = composite::cov(self, 1, Tensor(), Tensor());
  if (c.dim() == 0) return aten::div(c, c);
  Tensor variance = aten::diagonal(c);
  if (c.is_complex()) variance = aten::real(variance);
  const Tensor deviation = aten::sqrt(variance);
  Tensor result =
      aten::div(aten::div(c, aten::unsqueeze(deviation, 1)), aten::unsqueeze(deviation, 0));
  // Rounding may have exceeded 1.
  const Scalar low(-1), high(1);
  if (!result.is_complex()) return aten::clamp(result, low, high);
  return aten::complex(aten::clamp(aten::real(result), low, high),
                       aten::clamp(aten::imag(result), low, high));
}

}  // namespace treadle::composite
