// Linear systems, inverses and determinants, composed of the kernels of LU and triangular solution.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_linalg_lstsq.h"
#include "aten/ops/_linalg_lu.h"
#include "aten/ops/_linalg_solve.h"
#include "aten/ops/_lu_permutation.h"
#include "aten/ops/abs.h"
#include "aten/ops/add.h"
#include "aten/ops/adjoint.h"
#include "aten/ops/arange.h"
#include "aten/ops/argsort.h"
#include "aten/ops/clone.h"
#include "aten/ops/conj.h"
#include "aten/ops/det.h"
#include "aten/ops/diagonal.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/expand.h"
#include "aten/ops/eye.h"
#include "aten/ops/gather.h"
#include "aten/ops/inverse.h"
#include "aten/ops/linalg/composite_errors.h"
#include "aten/ops/linalg/shape.h"
#include "aten/ops/linalg_det.h"
#include "aten/ops/linalg_inv.h"
#include "aten/ops/linalg_inv_ex.h"
#include "aten/ops/linalg_lstsq.h"
#include "aten/ops/linalg_lu_solve.h"
#include "aten/ops/linalg_slogdet.h"
#include "aten/ops/linalg_solve.h"
#include "aten/ops/linalg_solve_ex.h"
#include "aten/ops/linalg_solve_triangular.h"
#include "aten/ops/linalg_tensorinv.h"
#include "aten/ops/linalg_tensorsolve.h"
#include "aten/ops/log.h"
#include "aten/ops/logdet.h"
#include "aten/ops/lu_solve.h"
#include "aten/ops/movedim.h"
#include "aten/ops/mul.h"
#include "aten/ops/ne.h"
#include "aten/ops/prod.h"
#include "aten/ops/remainder.h"
#include "aten/ops/reshape.h"
#include "aten/ops/sgn.h"
#include "aten/ops/slogdet.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/transpose.h"
#include "aten/ops/triangular_solve.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/where.h"

namespace treadle::composite {
namespace {

constexpr char kSingular[] =
    "expected invertible matrices, got one whose LU factors have a zero "
    "pivot, number";

Tensor identity(int64_t n, const Tensor& like) {
  return aten::eye(n, like.dtype(), std::nullopt, like.device());
}

// 1 or -1, by how many exchanges of rows the pivots (..., k) make.
Tensor parity(const Tensor& pivots, ScalarType dtype) {
  const Tensor straight =
      aten::arange(1, pivots.size(-1) + 1, ScalarType::Int32, std::nullopt, pivots.device());
  const Tensor exchanges = aten::sum(aten::ne(pivots, straight), OptionalIntList({-1}));
  const Tensor odd = aten::remainder(exchanges, Scalar(2));
  return aten::to(aten::sub(Tensor(aten::mul(odd, Scalar(-2))), Scalar(-1)), dtype);
}

// Rows of `t` in the order of `order` (..., rows), where batches broadcast.
Tensor rows_in_order(const Tensor& t, const Tensor& order) {
  const Tensor column = aten::unsqueeze(order, -1);
  DimVector sizes = shape::broadcast_batches("linalg.lu_solve", t, column);
  sizes.push_back(t.size(-2));
  sizes.push_back(t.size(-1));
  return aten::gather(aten::expand(t, sizes), -2, aten::expand(column, sizes));
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& a, const Tensor& b, bool left,
                                           bool check_errors) {
  auto [result, info] = aten::_linalg_solve(a, b, left);
  if (check_errors) require_success("linalg.solve", kSingular, info);
  return {result, info};
}

Tensor linalg_solve(const Tensor& a, const Tensor& b, bool left) {
  return std::get<0>(aten::linalg_solve_ex(a, b, left, true));
}

std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& a, bool check_errors) {
  shape::require_square("linalg.inv", a);
  // As many right sides as there are matrices, because one of (n, n) would be taken for n vectors
  // if there are n.
  const Tensor unit = aten::expand(identity(a.size(-1), a), a.sizes());
  auto [result, info] = aten::_linalg_solve(a, unit, true);
  if (check_errors) require_success("linalg.inv", kSingular, info);
  return {result, info};
}

Tensor linalg_inv(const Tensor& a) { return std::get<0>(aten::linalg_inv_ex(a, true)); }

std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& a, bool upper,
                                            bool transpose, bool unitriangular) {
  shape::require_square("triangular_solve", a);
  const Tensor matrix = transpose ? aten::transpose(a, -2, -1) : a;
  return {aten::linalg_solve_triangular(matrix, self, upper != transpose, true, unitriangular),
          aten::clone(a)};
}

Tensor linalg_lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left,
                       bool adjoint) {
  const char* const op = "linalg.lu_solve";
  shape::require_square(op, lu);
  shape::require_matrix(op, "B", b);
  check<ErrorKind::Runtime>(pivots.dtype() == ScalarType::Int32 &&
                                pivots.sizes() == lu.sizes().slice(0, lu.sizes().size() - 1),
                            OpName(op), "expected pivots of dtype int32 and shape ",
                            lu.sizes().slice(0, lu.sizes().size() - 1), ", got ", pivots);
  check<ErrorKind::Runtime>(lu.dtype() == b.dtype(), OpName(op),
                            "expected LU and B of one dtype, got ", lu.dtype(), " and ", b.dtype());
  check<ErrorKind::Runtime>(b.size(left ? -2 : -1) == lu.size(-1), OpName(op),
                            "expected LU and B that fit together, got shapes ", lu.sizes(), " and ",
                            b.sizes());
  // X A = B is A^H X^H = B^H.
  if (!left)
    return aten::adjoint(aten::linalg_lu_solve(lu, pivots, aten::adjoint(b), true, !adjoint));
  const Tensor order = aten::_lu_permutation(pivots, lu.size(-1));
  if (!adjoint) {
    const Tensor y = aten::linalg_solve_triangular(lu, rows_in_order(b, order), false, true, true);
    return aten::linalg_solve_triangular(lu, y, true, true, false);
  }
  const Tensor factors = aten::adjoint(lu);
  const Tensor y = aten::linalg_solve_triangular(factors, b, false, true, false);
  return rows_in_order(aten::linalg_solve_triangular(factors, y, true, true, true),
                       aten::argsort(order, -1, false));
}

Tensor lu_solve(const Tensor& self, const Tensor& lu_data, const Tensor& lu_pivots) {
  return aten::linalg_lu_solve(lu_data, lu_pivots, self);
}

Tensor linalg_det(const Tensor& a) {
  shape::require_square("linalg.det", a);
  const auto [lu, pivots, info] = aten::_linalg_lu(a);
  return aten::mul(aten::prod(aten::diagonal(lu, 0, -2, -1), -1), parity(pivots, a.dtype()));
}

Tensor det(const Tensor& self) { return aten::linalg_det(self); }

std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& a) {
  shape::require_square("linalg.slogdet", a);
  const auto [lu, pivots, info] = aten::_linalg_lu(a);
  const Tensor diagonal = aten::diagonal(lu, 0, -2, -1);
  return {aten::mul(aten::prod(aten::sgn(diagonal), -1), parity(pivots, a.dtype())),
          aten::sum(aten::log(aten::abs(diagonal)), OptionalIntList({-1}))};
}

std::tuple<Tensor, Tensor> slogdet(const Tensor& self) { return aten::linalg_slogdet(self); }

Tensor logdet(const Tensor& self) {
  shape::require_square("logdet", self);
  const auto [sign, logabsdet] = aten::linalg_slogdet(self);
  // log(sign) is 0 for 1, NaN for -1, and of a complex sign the angle.
  const Tensor direction = aten::log(sign);
  return aten::where(aten::eq(sign, 0), aten::to(logabsdet, self.dtype()),
                     aten::add(direction, logabsdet));
}

std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Tensor& self, const Tensor& b,
                                                        std::optional<double> rcond,
                                                        std::optional<std::string_view> driver) {
  const char* const op = "linalg.lstsq";
  shape::require_matrix(op, "input", self);
  check<ErrorKind::Runtime>(b.dim() >= 1 && self.dtype() == b.dtype(), OpName(op),
                            "expected b with at least 1 dimension and the dtype of input, got ", b,
                            " for ", self);
  const bool vector =
      b.dim() == self.dim() - 1 && b.sizes() == self.sizes().slice(0, self.sizes().size() - 1);
  const Tensor sides = vector ? aten::unsqueeze(b, -1) : b;
  check<ErrorKind::Runtime>(sides.dim() >= 2 && sides.size(-2) == self.size(-2), OpName(op),
                            "expected b with as many rows as input, got shapes ", self.sizes(),
                            " and ", b.sizes());
  shape::broadcast_batches(op, self, sides);
  const double epsilon = to_real(self.dtype()) == ScalarType::Float32 ? 0x1p-23 : 0x1p-52;
  const double cut =
      rcond.value_or(epsilon * static_cast<double>(std::max(self.size(-2), self.size(-1))));
  auto [solution, residuals, rank, values] =
      aten::_linalg_lstsq(self, sides, cut, driver.value_or("gelsy"));
  return {vector ? aten::squeeze(solution, -1) : solution,
          vector && residuals.numel() > 0 ? aten::squeeze(residuals, -1) : residuals, rank, values};
}

Tensor linalg_tensorinv(const Tensor& self, int64_t ind) {
  check<ErrorKind::Runtime>(ind <= self.dim(), OpName("linalg.tensorinv"), "expected ind in [1, ",
                            self.dim(), "], got ind = ", ind);
  const IntList first = self.sizes().slice(0, static_cast<size_t>(ind)),
                rest = self.sizes().slice(static_cast<size_t>(ind));
  const int64_t rows = checked_numel(first), columns = checked_numel(rest);
  check<ErrorKind::Runtime>(rows == columns, OpName("linalg.tensorinv"),
                            "expected sizes with one product before and behind "
                            "dimension ",
                            ind, ", got shape ", self.sizes());
  DimVector sizes(rest);
  for (const int64_t n : first) sizes.push_back(n);
  const auto [inverse, info] = aten::linalg_inv_ex(aten::reshape(self, {rows, columns}), false);
  require_success("linalg.tensorinv", kSingular, info);
  return aten::reshape(inverse, sizes);
}

Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, OptionalIntList dims) {
  Tensor a = self;
  if (dims) {
    const DimVector moved = wrap_dims("linalg.tensorsolve", dims, self.dim(), false);
    DimVector last;
    for (size_t i = 0; i < moved.size(); ++i)
      last.push_back(self.dim() - static_cast<int64_t>(moved.size() - i));
    a = aten::movedim(self, IntList(moved), IntList(last));
  }
  const size_t count = other.sizes().size();
  check<ErrorKind::Runtime>(a.sizes().size() >= count, OpName("linalg.tensorsolve"),
                            "expected input with at least the dimensions of "
                            "other, got shapes ",
                            a.sizes(), " and ", other.sizes());
  const IntList result = a.sizes().slice(count);
  const int64_t n = other.numel();
  check<ErrorKind::Runtime>(checked_numel(result) == n && a.numel() == n * n,
                            OpName("linalg.tensorsolve"),
                            "expected input with as many columns as other has "
                            "elements, got shapes ",
                            a.sizes(), " and ", other.sizes());
  const DimVector sizes(result);
  return aten::reshape(aten::linalg_solve(aten::reshape(a, {n, n}), aten::reshape(other, {n})),
                       sizes);
}

}  // namespace treadle::composite
