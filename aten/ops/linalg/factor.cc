// The public forms of factorisations: checks of `info`, unpacking, and older names.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_linalg_cholesky.h"
#include "aten/ops/_linalg_ldl.h"
#include "aten/ops/_linalg_lu.h"
#include "aten/ops/_lu_permutation.h"
#include "aten/ops/_lu_with_info.h"
#include "aten/ops/add.h"
#include "aten/ops/adjoint.h"
#include "aten/ops/arange.h"
#include "aten/ops/cholesky.h"
#include "aten/ops/cholesky_inverse.h"
#include "aten/ops/cholesky_solve.h"
#include "aten/ops/empty.h"
#include "aten/ops/eq.h"
#include "aten/ops/eye.h"
#include "aten/ops/linalg/composite_errors.h"
#include "aten/ops/linalg/shape.h"
#include "aten/ops/linalg_cholesky.h"
#include "aten/ops/linalg_cholesky_ex.h"
#include "aten/ops/linalg_householder_product.h"
#include "aten/ops/linalg_ldl_factor.h"
#include "aten/ops/linalg_ldl_factor_ex.h"
#include "aten/ops/linalg_lu.h"
#include "aten/ops/linalg_lu_factor.h"
#include "aten/ops/linalg_lu_factor_ex.h"
#include "aten/ops/linalg_qr.h"
#include "aten/ops/linalg_solve_triangular.h"
#include "aten/ops/lu_unpack.h"
#include "aten/ops/narrow.h"
#include "aten/ops/orgqr.h"
#include "aten/ops/qr.h"
#include "aten/ops/to.h"
#include "aten/ops/tril.h"
#include "aten/ops/triu.h"
#include "aten/ops/unsqueeze.h"

namespace treadle::composite {
namespace {

constexpr char kNotPositive[] =
    "expected positive-definite matrices, got one that is not, first at the leading minor of order";

void require_pivot(const char* op, bool pivot) {
  check<ErrorKind::NotImplemented>(pivot, OpName(op),
                                   "expected pivot = True on the cpu, got False");
}

Tensor none(const Tensor& like, ScalarType dtype) {
  return aten::empty({0}, dtype, std::nullopt, like.device());
}

std::tuple<Tensor, Tensor> checked_cholesky(const char* op, const Tensor& self, bool upper,
                                            bool check_errors) {
  auto [factor, info] = aten::_linalg_cholesky(self, upper);
  if (check_errors) require_success(op, kNotPositive, info);
  return {factor, info};
}

std::tuple<Tensor, Tensor, Tensor> checked_lu(const char* op, const Tensor& a, bool pivot,
                                              bool check_errors) {
  require_pivot(op, pivot);
  auto [lu, pivots, info] = aten::_linalg_lu(a);
  if (check_errors)
    require_success(op, "expected matrices of full rank, got one with a zero pivot, number", info);
  return {lu, pivots, info};
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& self, bool upper, bool check_errors) {
  return checked_cholesky("linalg.cholesky_ex", self, upper, check_errors);
}

Tensor linalg_cholesky(const Tensor& self, bool upper) {
  return std::get<0>(checked_cholesky("linalg.cholesky", self, upper, true));
}

Tensor cholesky(const Tensor& self, bool upper) {
  return std::get<0>(checked_cholesky("cholesky", self, upper, true));
}

Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper) {
  const char* const op = "cholesky_solve";
  shape::require_square(op, input2);
  shape::require_matrix(op, "input", self);
  check<ErrorKind::Runtime>(self.size(-2) == input2.size(-1), OpName(op),
                            "expected a right side with as many rows as the factor, got shapes ",
                            self.sizes(), " and ", input2.sizes());
  const Tensor other = aten::adjoint(input2);
  const Tensor y = aten::linalg_solve_triangular(upper ? other : input2, self, false);
  return aten::linalg_solve_triangular(upper ? input2 : other, y, true);
}

Tensor cholesky_inverse(const Tensor& self, bool upper) {
  shape::require_square("cholesky_inverse", self);
  return aten::cholesky_solve(aten::eye(self.size(-1), self.dtype(), std::nullopt, self.device()),
                              self, upper);
}

std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& a, bool pivot,
                                                       bool check_errors) {
  return checked_lu("linalg.lu_factor_ex", a, pivot, check_errors);
}

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& a, bool pivot) {
  auto [lu, pivots, info] = checked_lu("linalg.lu_factor", a, pivot, false);
  return {lu, pivots};
}

std::tuple<Tensor, Tensor, Tensor> _lu_with_info(const Tensor& self, bool pivot,
                                                 bool check_errors) {
  return checked_lu("lu", self, pivot, check_errors);
}

std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& a, bool pivot) {
  const auto [lu, pivots, info] = checked_lu("linalg.lu", a, pivot, false);
  return aten::lu_unpack(lu, pivots, true, true);
}

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& lu, const Tensor& pivots,
                                             bool unpack_data, bool unpack_pivots) {
  shape::require_matrix("lu_unpack", "LU_data", lu);
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  Tensor p = none(lu, lu.dtype()), l = p, u = p;
  if (unpack_pivots) {
    DimVector sizes(lu.sizes());
    sizes.pop_back();
    sizes.back() = k;
    check<ErrorKind::Runtime>(
        pivots.dtype() == ScalarType::Int32 && pivots.sizes() == IntList(sizes),
        OpName("lu_unpack"), "expected LU_pivots of dtype int32 and shape ", IntList(sizes),
        ", got ", pivots);
    // Row i of the factors is row order[i] of A: P has a 1 at (order[i], i).
    const Tensor order = aten::_lu_permutation(pivots, m);
    const Tensor rows =
        aten::unsqueeze(aten::arange(m, ScalarType::Int64, std::nullopt, lu.device()), -1);
    p = aten::to(aten::eq(aten::unsqueeze(order, -2), rows), lu.dtype());
  }
  if (unpack_data) {
    const Tensor unit = aten::eye(m, k, lu.dtype(), std::nullopt, lu.device());
    l = aten::add(aten::tril(aten::narrow(lu, -1, 0, k), -1), unit);
    u = aten::triu(aten::narrow(lu, -2, 0, k), 0);
  }
  return {p, l, u};
}

std::tuple<Tensor, Tensor, Tensor> linalg_ldl_factor_ex(const Tensor& self, bool hermitian,
                                                        bool check_errors) {
  auto [ld, pivots, info] = aten::_linalg_ldl(self, hermitian);
  if (check_errors)
    require_success("linalg.ldl_factor_ex",
                    "expected matrices of full rank, got one with a zero block of D, number", info);
  return {ld, pivots, info};
}

std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self, bool hermitian) {
  auto [ld, pivots, info] = aten::_linalg_ldl(self, hermitian);
  return {ld, pivots};
}

std::tuple<Tensor, Tensor> qr(const Tensor& self, bool some) {
  return aten::linalg_qr(self, some ? "reduced" : "complete");
}

Tensor orgqr(const Tensor& self, const Tensor& input2) {
  return aten::linalg_householder_product(self, input2);
}

}  // namespace treadle::composite
