// linalg_lstsq: the X with the least |A X - B|, and among those the X with the least |X|.
//
// The driver "gels" assumes full rank and uses QR. The others count the singular values above rcond
// times the largest one. That includes "gelsy", which on the CPU finds the rank by QR with column
// pivots. The host waits for the checks and the ranks.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/libraries/solver.h"
#include "aten/ops/_linalg_lstsq.h"
#include "aten/ops/_linalg_svd.h"
#include "aten/ops/abs.h"
#include "aten/ops/add.h"
#include "aten/ops/adjoint.h"
#include "aten/ops/all.h"
#include "aten/ops/any.h"
#include "aten/ops/copy_.h"
#include "aten/ops/diagonal.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/expand.h"
#include "aten/ops/eye.h"
#include "aten/ops/geqrf.h"
#include "aten/ops/gt.h"
#include "aten/ops/linalg/kernel_errors.h"
#include "aten/ops/linalg/shape.h"
#include "aten/ops/linalg_solve_triangular.h"
#include "aten/ops/logical_and.h"
#include "aten/ops/matmul.h"
#include "aten/ops/mul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/ormqr.h"
#include "aten/ops/square.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/where.h"
#include "aten/ops/zeros.h"

namespace treadle::cuda {
namespace {

// For each column, over the rows.
Tensor squared_length(const Tensor& t) {
  return aten::sum(aten::square(aten::abs(t)), OptionalIntList({-2}));
}

struct Solution {
  Tensor x;
  Tensor residuals;  // (..., k), where there are more rows than columns
};

void require_full_rank(const Tensor& r) {
  const Tensor zero = awaited(aten::any(aten::eq(aten::diagonal(r, 0, -2, -1), Scalar(0)), -1));
  for (int64_t i = 0; i < zero.numel(); ++i)
    if (zero.data_as<bool>()[i]) fail_rank(i);
}

// A = Q R: R X is the first part of Q^H B, and the rest is the residual.
Solution solve_tall(const Tensor& a, const Tensor& b) {
  const int64_t m = a.size(-2), n = a.size(-1);
  const auto [reflectors, tau] = aten::geqrf(a);
  const Tensor r = aten::narrow(reflectors, -2, 0, n);
  require_full_rank(r);
  const Tensor sides = aten::ormqr(reflectors, tau, b, true, true);
  return {aten::linalg_solve_triangular(r, aten::narrow(sides, -2, 0, n), true),
          m > n ? squared_length(aten::narrow(sides, -2, n, m - n)) : Tensor()};
}
// A^H = Q R: X is Q Y with R^H Y = B.
Solution solve_wide(const Tensor& a, const Tensor& b) {
  const int64_t m = a.size(-2), n = a.size(-1);
  const auto [reflectors, tau] = aten::geqrf(aten::adjoint(a));
  const Tensor r = aten::narrow(reflectors, -2, 0, m);
  require_full_rank(r);
  DimVector sizes(b.sizes());
  sizes[sizes.size() - 2] = n;
  const Tensor y = aten::zeros(sizes, b.dtype(), std::nullopt, b.device());
  aten::copy_(aten::narrow(y, -2, 0, m), aten::linalg_solve_triangular(aten::adjoint(r), b, false));
  return {aten::ormqr(reflectors, tau, y, true, false), Tensor()};
}

template <class T>
std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq_cuda(const Tensor& a, const Tensor& b,
                                                             double rcond,
                                                             std::string_view driver) {
  const DimVector batch = shape::broadcast_batches("linalg_lstsq", a, b);
  const auto with = [&](std::initializer_list<int64_t> rest) {
    DimVector sizes(batch);
    for (const int64_t n : rest) sizes.push_back(n);
    return sizes;
  };
  const auto spread = [&](const Tensor& t) {
    return aten::contiguous(aten::expand(t, with({t.size(-2), t.size(-1)})));
  };
  const auto zeros = [&](const DimVector& sizes, ScalarType dtype) {
    return aten::zeros(sizes, dtype, std::nullopt, a.device());
  };
  const Tensor matrices = spread(a), sides = spread(b);
  const int64_t m = a.size(-2), n = a.size(-1), k = b.size(-1), least = std::min(m, n);
  const bool has_values = driver == "gelsd" || driver == "gelss", has_rank = driver != "gels";
  const ScalarType real = to_real(a.dtype());
  const Tensor no_ranks = zeros({0}, ScalarType::Int64), none = zeros({0}, real);
  // The distances are known where every matrix has full rank and more rows than columns.
  const bool has_residuals = m > n && driver != "gelsy";

  const Tensor sound =
      awaited(aten::logical_and(finite_matrices(matrices), finite_matrices(sides)));
  for (int64_t i = 0; i < sound.numel(); ++i)
    if (!sound.data_as<bool>()[i]) fail_sides_not_finite(i);

  if (least == 0 || k == 0) {
    const Tensor full = aten::add(zeros(batch, ScalarType::Int64), Scalar(least));
    return {zeros(with({n, k}), a.dtype()), has_residuals ? squared_length(sides) : none,
            has_rank ? full : no_ranks, has_values ? zeros(with({least}), real) : none};
  }
  if (!has_rank) {
    // As in LAPACK, the solution for a matrix of zeros is 0, and so is the residual.
    const Tensor none_there =
        aten::all(aten::eq(matrices, Scalar(0)), OptionalIntList({-2, -1}), true);
    const Tensor unit = aten::eye(m, n, a.dtype(), std::nullopt, a.device());
    const Tensor solved = aten::where(none_there, unit, matrices);
    const Solution s = m >= n ? solve_tall(solved, sides) : solve_wide(solved, sides);
    const Tensor x = aten::where(none_there, Scalar(0), s.x);
    if (!has_residuals) return {x, none, no_ranks, none};
    return {x, aten::where(aten::squeeze(none_there, -1), Scalar(0), s.residuals), no_ranks, none};
  }
  const auto [u, values, vh] = aten::_linalg_svd(matrices, false, true);
  const double cut = rcond < 0 ? std::numeric_limits<real_type<T>>::epsilon() : rcond;
  const Tensor counts = aten::gt(values, aten::mul(aten::narrow(values, -1, 0, 1), Scalar(cut)));
  const Tensor ranks = aten::sum(counts, OptionalIntList({-1}));
  const Tensor parts =
      aten::div(aten::matmul(aten::adjoint(u), sides), aten::unsqueeze(values, -1));
  const Tensor x =
      aten::matmul(aten::adjoint(vh), aten::where(aten::unsqueeze(counts, -1), parts, Scalar(0)));
  bool full = has_residuals;
  if (full) {
    const Tensor found = awaited(ranks);
    for (int64_t i = 0; i < found.numel(); ++i) full &= found.data_as<int64_t>()[i] == least;
  }
  return {x, full ? squared_length(aten::sub(sides, aten::matmul(matrices, x))) : none, ranks,
          has_values ? values : none};
}

const auto lstsq_registered = register_cuda<aten::ops::_linalg_lstsq>(
    TypeList<float, double, std::complex<float>, std::complex<double>>(),
    []<class T>() { return &linalg_lstsq_cuda<T>; }, "linalg_lstsq_cuda");

}  // namespace
}  // namespace treadle::cuda
