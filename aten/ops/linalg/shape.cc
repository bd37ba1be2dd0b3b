// Shape rules of linear algebra.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/linalg/shape.h"

namespace treadle::shape {
namespace {

IntList batch_of(const Tensor& t) { return t.sizes().slice(0, t.sizes().size() - 2); }

DimVector with(IntList batch, std::initializer_list<int64_t> rest) {
  DimVector sizes(batch);
  for (const int64_t n : rest) sizes.push_back(n);
  return sizes;
}

void same_dtype(const char* op, const char* a, const Tensor& x, const char* b, const Tensor& y) {
  check<ErrorKind::Runtime>(x.dtype() == y.dtype(), OpName(shown_linalg(op)), "expected ", a,
                            " and ", b, " of one dtype, got ", x.dtype(), " and ", y.dtype());
}

DimVector broadcast(std::string_view op, IntList a, IntList b, const Tensor& x, const Tensor& y) {
  std::optional<DimVector> sizes = broadcast_shape(a, b);
  check<ErrorKind::Runtime>(sizes.has_value(), OpName(shown_linalg(op)),
                            "expected batch dimensions that broadcast, got shapes ", x.sizes(),
                            " and ", y.sizes());
  return *std::move(sizes);
}

TensorSpec empty_of(const Tensor& like, ScalarType dtype) {
  return {DimVector({0}), dtype, like.device()};
}

}  // namespace

std::string shown_linalg(std::string_view op) {
  if (op.starts_with("_")) op.remove_prefix(1);
  constexpr std::string_view kPrefix = "linalg_";
  if (!op.starts_with(kPrefix)) return std::string(op);
  op.remove_prefix(kPrefix.size());
  return str("linalg.", op);
}

void require_matrix(std::string_view op, const char* name, const Tensor& t) {
  check<ErrorKind::Runtime>(t.dim() >= 2, OpName(shown_linalg(op)), "expected ", name,
                            " with at least 2 dimensions, got shape ", t.sizes());
}

void require_square(std::string_view op, const Tensor& t) {
  check<ErrorKind::Runtime>(t.dim() >= 2 && t.size(-1) == t.size(-2), OpName(shown_linalg(op)),
                            "expected square matrices, got shape ", t.sizes());
}

DimVector broadcast_batches(std::string_view op, const Tensor& a, const Tensor& b) {
  return broadcast(op, batch_of(a), batch_of(b), a, b);
}

bool is_vector_rhs(const Tensor& a, const Tensor& b) {
  if (b.dim() == 1) return true;
  return a.dim() - 1 == b.dim() && b.sizes() == a.sizes().slice(0, a.sizes().size() - 1);
}

std::array<TensorSpec, 2> linalg_cholesky(const char* op, const Tensor& self) {
  require_square(op, self);
  return {TensorSpec{DimVector(self.sizes()), self.dtype(), self.device()},
          TensorSpec{DimVector(batch_of(self)), ScalarType::Int32, self.device()}};
}

std::array<TensorSpec, 3> linalg_lu(const char* op, const Tensor& a) {
  require_matrix(op, "A", a);
  const IntList batch = batch_of(a);
  return {
      TensorSpec{DimVector(a.sizes()), a.dtype(), a.device()},
      TensorSpec{with(batch, {std::min(a.size(-2), a.size(-1))}), ScalarType::Int32, a.device()},
      TensorSpec{DimVector(batch), ScalarType::Int32, a.device()}};
}

std::array<TensorSpec, 3> linalg_ldl(const char* op, const Tensor& self) {
  require_square(op, self);
  return linalg_lu(op, self);
}

std::array<TensorSpec, 2> linalg_qr(const char* op, const Tensor& a, std::string_view mode) {
  require_matrix(op, "A", a);
  check<ErrorKind::Runtime>(mode == "reduced" || mode == "complete" || mode == "r",
                            OpName(shown_linalg(op)),
                            "expected mode 'reduced', 'complete' or 'r', got '", mode, "'");
  const int64_t m = a.size(-2), n = a.size(-1), k = mode == "complete" ? m : std::min(m, n);
  const IntList batch = batch_of(a);
  const TensorSpec r{with(batch, {k, n}), a.dtype(), a.device()};
  if (mode == "r") return {empty_of(a, a.dtype()), r};
  return {TensorSpec{with(batch, {m, k}), a.dtype(), a.device()}, r};
}

std::array<TensorSpec, 2> geqrf(const char* op, const Tensor& self) {
  require_matrix(op, "input", self);
  const int64_t k = std::min(self.size(-2), self.size(-1));
  return {TensorSpec{DimVector(self.sizes()), self.dtype(), self.device()},
          TensorSpec{with(batch_of(self), {k}), self.dtype(), self.device()}};
}

// Reflectors in the columns of `v` (..., m, n), one for each of `tau` (..., k).
static void require_reflectors(const char* op, const Tensor& v, const Tensor& tau) {
  require_matrix(op, "input", v);
  same_dtype(op, "input", v, "tau", tau);
  check<ErrorKind::Runtime>(
      tau.dim() == v.dim() - 1 && tau.sizes().slice(0, tau.sizes().size() - 1) == batch_of(v) &&
          tau.size(-1) <= std::min(v.size(-1), v.size(-2)),
      OpName(shown_linalg(op)),
      "expected tau with the batch of input and at most as many entries as its "
      "matrices have columns and rows, got shapes ",
      v.sizes(), " and ", tau.sizes());
}

TensorSpec linalg_householder_product(const char* op, const Tensor& input, const Tensor& tau) {
  require_reflectors(op, input, tau);
  check<ErrorKind::Runtime>(input.size(-2) >= input.size(-1), OpName(shown_linalg(op)),
                            "expected matrices with no more columns than rows, got shape ",
                            input.sizes());
  return {DimVector(input.sizes()), input.dtype(), input.device()};
}

TensorSpec ormqr(const char* op, const Tensor& self, const Tensor& input2, const Tensor& input3,
                 bool left) {
  require_reflectors(op, self, input2);
  require_matrix(op, "input3", input3);
  same_dtype(op, "input", self, "input3", input3);
  check<ErrorKind::Runtime>(
      batch_of(self) == batch_of(input3) && input3.size(left ? -2 : -1) == self.size(-2),
      OpName(op), "expected input3 with the batch of input and ", self.size(-2),
      left ? " rows" : " columns", ", got shapes ", self.sizes(), " and ", input3.sizes());
  return {DimVector(input3.sizes()), self.dtype(), self.device()};
}

std::array<TensorSpec, 2> linalg_solve(const char* op, const Tensor& a, const Tensor& b,
                                       bool left) {
  require_square(op, a);
  same_dtype(op, "A", a, "B", b);
  check<ErrorKind::Runtime>(b.dim() >= 1, OpName(shown_linalg(op)),
                            "expected B with at least 1 dimension, got a 0-dim tensor");
  const int64_t n = a.size(-1);
  const bool vector = is_vector_rhs(a, b);
  check<ErrorKind::Runtime>(left || !vector, OpName(shown_linalg(op)),
                            "expected left = True for a vector B, got shapes ", a.sizes(), " and ",
                            b.sizes());
  check<ErrorKind::Runtime>(
      (vector ? b.size(-1) : b.size(left ? -2 : -1)) == n, OpName(shown_linalg(op)),
      "expected A and B that fit together, got shapes ", a.sizes(), " and ", b.sizes());
  const DimVector batch = vector ? broadcast(op, batch_of(a), b.sizes().slice(0, b.dim() - 1), a, b)
                                 : broadcast_batches(op, a, b);
  const DimVector sizes = vector ? with(batch, {n}) : with(batch, {b.size(-2), b.size(-1)});
  return {TensorSpec{sizes, a.dtype(), a.device()},
          TensorSpec{DimVector(batch_of(a)), ScalarType::Int32, a.device()}};
}

TensorSpec linalg_solve_triangular(const char* op, const Tensor& a, const Tensor& b, bool left) {
  require_square(op, a);
  require_matrix(op, "B", b);
  same_dtype(op, "A", a, "B", b);
  check<ErrorKind::Runtime>(b.size(left ? -2 : -1) == a.size(-1), OpName(shown_linalg(op)),
                            "expected A and B that fit together, got shapes ", a.sizes(), " and ",
                            b.sizes());
  return {with(broadcast_batches(op, a, b), {b.size(-2), b.size(-1)}), a.dtype(), a.device()};
}

TensorSpec linalg_ldl_solve(const char* op, const Tensor& ld, const Tensor& pivots,
                            const Tensor& b) {
  require_square(op, ld);
  require_matrix(op, "B", b);
  same_dtype(op, "LD", ld, "B", b);
  check<ErrorKind::Runtime>(pivots.dtype() == ScalarType::Int32, OpName(shown_linalg(op)),
                            "expected pivots of dtype int32, got ", pivots.dtype());
  check<ErrorKind::Runtime>(pivots.sizes() == ld.sizes().slice(0, ld.dim() - 1),
                            OpName(shown_linalg(op)), "expected pivots of shape ",
                            ld.sizes().slice(0, ld.dim() - 1), ", got ", pivots.sizes());
  check<ErrorKind::Runtime>(b.size(-2) == ld.size(-1), OpName(shown_linalg(op)),
                            "expected LD and B that fit together, got shapes ", ld.sizes(), " and ",
                            b.sizes());
  return {with(broadcast_batches(op, ld, b), {b.size(-2), b.size(-1)}), ld.dtype(), ld.device()};
}

TensorSpec lu_permutation(const char* op, const Tensor& pivots, int64_t rows) {
  check<ErrorKind::Runtime>(
      pivots.dim() >= 1 && pivots.dtype() == ScalarType::Int32 && pivots.size(-1) <= rows,
      OpName(op), "expected pivots of dtype int32 and at most ", rows,
      " in the last dimension, got ", pivots);
  return {with(pivots.sizes().slice(0, pivots.dim() - 1), {rows}), ScalarType::Int64,
          pivots.device()};
}

std::array<TensorSpec, 2> linalg_eigh(const char* op, const Tensor& a, bool compute_v) {
  require_square(op, a);
  const TensorSpec vectors{DimVector(a.sizes()), a.dtype(), a.device()};
  return {TensorSpec{with(batch_of(a), {a.size(-1)}), to_real(a.dtype()), a.device()},
          compute_v ? vectors : empty_of(a, a.dtype())};
}

std::array<TensorSpec, 2> linalg_eig(const char* op, const Tensor& a, bool compute_v) {
  require_square(op, a);
  const ScalarType dtype = to_complex(a.dtype());
  const TensorSpec vectors{DimVector(a.sizes()), dtype, a.device()};
  return {TensorSpec{with(batch_of(a), {a.size(-1)}), dtype, a.device()},
          compute_v ? vectors : empty_of(a, dtype)};
}

std::array<TensorSpec, 3> linalg_svd(const char* op, const Tensor& a, bool full_matrices,
                                     bool compute_uv) {
  require_matrix(op, "A", a);
  const IntList batch = batch_of(a);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const TensorSpec s{with(batch, {k}), to_real(a.dtype()), a.device()};
  if (!compute_uv) return {empty_of(a, a.dtype()), s, empty_of(a, a.dtype())};
  return {TensorSpec{with(batch, {m, full_matrices ? m : k}), a.dtype(), a.device()}, s,
          TensorSpec{with(batch, {full_matrices ? n : k, n}), a.dtype(), a.device()}};
}

TensorSpec linalg_matrix_exp(const char* op, const Tensor& self) {
  require_square(op, self);
  return {DimVector(self.sizes()), self.dtype(), self.device()};
}

TensorSpec cdist(const char* op, const Tensor& x1, const Tensor& x2) {
  require_matrix(op, "x1", x1);
  require_matrix(op, "x2", x2);
  same_dtype(op, "x1", x1, "x2", x2);
  check<ErrorKind::Runtime>(x1.size(-1) == x2.size(-1), OpName(shown_linalg(op)),
                            "expected points with as many coordinates in x1 and x2, got shapes ",
                            x1.sizes(), " and ", x2.sizes());
  return {with(broadcast_batches(op, x1, x2), {x1.size(-2), x2.size(-2)}), x1.dtype(), x1.device()};
}

}  // namespace treadle::shape
