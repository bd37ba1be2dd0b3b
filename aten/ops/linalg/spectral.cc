// Eigenvalues, singular values, and the functions derived from them: pseudo-inverse, rank.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "aten/ops/_linalg_eig.h"
#include "aten/ops/_linalg_eigh.h"
#include "aten/ops/_linalg_svd.h"
#include "aten/ops/abs.h"
#include "aten/ops/adjoint.h"
#include "aten/ops/amax.h"
#include "aten/ops/empty.h"
#include "aten/ops/full.h"
#include "aten/ops/gt.h"
#include "aten/ops/linalg/shape.h"
#include "aten/ops/linalg_eig.h"
#include "aten/ops/linalg_eigh.h"
#include "aten/ops/linalg_eigvals.h"
#include "aten/ops/linalg_eigvalsh.h"
#include "aten/ops/linalg_matrix_rank.h"
#include "aten/ops/linalg_matrix_sqrth.h"
#include "aten/ops/linalg_pinv.h"
#include "aten/ops/linalg_polar.h"
#include "aten/ops/linalg_svd.h"
#include "aten/ops/linalg_svdvals.h"
#include "aten/ops/matmul.h"
#include "aten/ops/maximum.h"
#include "aten/ops/mul.h"
#include "aten/ops/pinverse.h"
#include "aten/ops/reciprocal.h"
#include "aten/ops/sqrt.h"
#include "aten/ops/sum.h"
#include "aten/ops/svd.h"
#include "aten/ops/symeig.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/where.h"
#include "aten/ops/zeros.h"
#include "core/base/layers.h"

namespace treadle::composite {
namespace {

// Vectors are needed for the gradient of the values.
bool wants_gradient(const Tensor& t) { return grad_enabled() && t.requires_grad(); }

Tensor number(double value, const Tensor& like) {
  return aten::full({}, Scalar(value), ScalarType::Float64, std::nullopt, like.device());
}

// Singular values at most this count as 0: max(atol, rtol * the largest), a number for each matrix
// of `self`, whose magnitudes are `values`.
Tensor bound(const char* op, const Tensor& self, const Tensor& values, const Tensor& atol,
             const Tensor& rtol) {
  for (const Tensor& t : {atol, rtol}) {
    check<ErrorKind::Runtime>(!t.defined() || !t.is_complex(), OpName(op),
                              "expected tolerances that are real, got ",
                              t.defined() ? t.dtype() : ScalarType::Float32);
  }
  const double epsilon = to_real(self.dtype()) == ScalarType::Float32 ? 0x1p-23 : 0x1p-52;
  const Tensor usual =
      number(epsilon * static_cast<double>(std::max(self.size(-2), self.size(-1))), self);
  const Tensor zero = number(0, self);
  const Tensor relative = rtol.defined()   ? rtol
                          : atol.defined() ? aten::where(aten::gt(atol, 0), zero, usual)
                                           : usual;
  const Tensor largest = aten::amax(values, {-1}, true);
  const Tensor scaled = aten::mul(aten::unsqueeze(relative, -1), largest);
  return atol.defined() ? aten::maximum(aten::unsqueeze(atol, -1), scaled) : scaled;
}

// Whether the matrices are empty, so that none has a largest value.
bool has_no_values(const Tensor& t) { return t.size(-1) == 0 || t.size(-2) == 0; }

Tensor rank_above(const char* op, const Tensor& self, const Tensor& atol, const Tensor& rtol,
                  bool hermitian) {
  shape::require_matrix(op, "input", self);
  if (hermitian) shape::require_square(op, self);
  if (has_no_values(self)) {
    const IntList batch = self.sizes().slice(0, self.sizes().size() - 2);
    return aten::zeros(batch, ScalarType::Int64, std::nullopt, self.device());
  }
  const Tensor values =
      hermitian ? aten::abs(aten::linalg_eigvalsh(self)) : aten::linalg_svdvals(self);
  return aten::sum(aten::gt(values, bound(op, self, values, atol, rtol)), OptionalIntList({-1}));
}

Tensor optional_number(std::optional<double> value, const Tensor& like) {
  return value ? number(*value, like) : Tensor();
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view uplo) {
  return aten::_linalg_eigh(self, uplo, true);
}

Tensor linalg_matrix_sqrth(const Tensor& self) {
  shape::require_square("linalg.matrix_sqrth", self);
  const auto [values, vectors] = aten::linalg_eigh(self);
  return aten::matmul(aten::mul(vectors, aten::unsqueeze(aten::sqrt(values), -2)),
                      aten::adjoint(vectors));
}

std::tuple<Tensor, Tensor> linalg_polar(const Tensor& a) {
  const char* const op = "linalg.polar";
  shape::require_matrix(op, "input", a);
  check<ErrorKind::Runtime>(a.size(-2) >= a.size(-1), OpName(op),
                            "expected at least as many rows as columns, got shape ", a.sizes());
  const auto [u, s, vh] = aten::linalg_svd(a, false);
  const Tensor v = aten::adjoint(vh);
  return {aten::matmul(u, vh), aten::matmul(aten::mul(v, aten::unsqueeze(s, -2)), vh)};
}

Tensor linalg_eigvalsh(const Tensor& self, std::string_view uplo) {
  return std::get<0>(aten::_linalg_eigh(self, uplo, wants_gradient(self)));
}

std::tuple<Tensor, Tensor> symeig(const Tensor& self, bool eigenvectors, bool upper) {
  return aten::_linalg_eigh(self, upper ? "U" : "L", eigenvectors);
}

std::tuple<Tensor, Tensor> linalg_eig(const Tensor& self) { return aten::_linalg_eig(self, true); }

Tensor linalg_eigvals(const Tensor& self) {
  return std::get<0>(aten::_linalg_eig(self, wants_gradient(self)));
}

std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& a, bool full_matrices,
                                              std::optional<std::string_view>) {
  return aten::_linalg_svd(a, full_matrices, true);
}

Tensor linalg_svdvals(const Tensor& a, std::optional<std::string_view>) {
  return std::get<1>(aten::_linalg_svd(a, false, wants_gradient(a)));
}

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some, bool compute_uv) {
  shape::require_matrix("svd", "input", self);
  if (compute_uv) {
    auto [u, s, vh] = aten::_linalg_svd(self, !some, true);
    return {u, s, aten::adjoint(vh)};
  }
  const Tensor s = aten::linalg_svdvals(self);
  const auto square = [&](int64_t n) {
    DimVector sizes(self.sizes());
    sizes[sizes.size() - 2] = sizes.back() = n;
    return aten::zeros(sizes, self.dtype(), std::nullopt, self.device());
  };
  return {square(self.size(-2)), s, square(self.size(-1))};
}

Tensor linalg_pinv(const Tensor& self, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  const char* const op = "linalg.pinv";
  shape::require_matrix(op, "input", self);
  if (hermitian) shape::require_square(op, self);
  if (has_no_values(self)) {
    DimVector sizes(self.sizes());
    std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
    return aten::zeros(sizes, self.dtype(), std::nullopt, self.device());
  }
  const auto inverse_of = [&](const Tensor& values, const Tensor& magnitudes) {
    const Tensor kept = aten::gt(magnitudes, bound(op, self, magnitudes, atol, rtol));
    return aten::unsqueeze(aten::where(kept, aten::reciprocal(values), Scalar(0.0)), -2);
  };
  if (hermitian) {
    const auto [values, vectors] = aten::linalg_eigh(self);
    return aten::matmul(aten::mul(vectors, inverse_of(values, aten::abs(values))),
                        aten::adjoint(vectors));
  }
  const auto [u, s, vh] = aten::linalg_svd(self, false);
  return aten::matmul(aten::mul(aten::adjoint(vh), inverse_of(s, s)), aten::adjoint(u));
}

Tensor linalg_pinv(const Tensor& self, std::optional<double> atol, std::optional<double> rtol,
                   bool hermitian) {
  return aten::linalg_pinv(self, optional_number(atol, self), optional_number(rtol, self),
                           hermitian);
}

Tensor linalg_pinv(const Tensor& self, double rcond, bool hermitian) {
  return aten::linalg_pinv(self, Tensor(), number(rcond, self), hermitian);
}

Tensor linalg_pinv(const Tensor& self, const Tensor& rcond, bool hermitian) {
  return aten::linalg_pinv(self, Tensor(), rcond, hermitian);
}

Tensor pinverse(const Tensor& self, double rcond) {
  return aten::linalg_pinv(self, Tensor(), number(rcond, self), false);
}

Tensor linalg_matrix_rank(const Tensor& input, const Tensor& atol, const Tensor& rtol,
                          bool hermitian) {
  return rank_above("linalg.matrix_rank", input, atol, rtol, hermitian);
}

Tensor linalg_matrix_rank(const Tensor& self, std::optional<double> atol,
                          std::optional<double> rtol, bool hermitian) {
  return rank_above("linalg.matrix_rank", self, optional_number(atol, self),
                    optional_number(rtol, self), hermitian);
}

Tensor linalg_matrix_rank(const Tensor& self, double tol, bool hermitian) {
  return rank_above("linalg.matrix_rank", self, number(tol, self), number(0, self), hermitian);
}

Tensor linalg_matrix_rank(const Tensor& input, const Tensor& tol, bool hermitian) {
  return rank_above("linalg.matrix_rank", input, tol, number(0, input), hermitian);
}

}  // namespace treadle::composite
