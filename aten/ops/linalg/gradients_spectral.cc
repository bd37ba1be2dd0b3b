// Derivatives of determinants, eigenvalues, singular values, the exponential and distances.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "aten/ops/abs.h"
#include "aten/ops/add.h"
#include "aten/ops/adjoint.h"
#include "aten/ops/amax.h"
#include "aten/ops/any.h"
#include "aten/ops/cat.h"
#include "aten/ops/conj.h"
#include "aten/ops/diag_embed.h"
#include "aten/ops/diagonal.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/eye.h"
#include "aten/ops/imag.h"
#include "aten/ops/item.h"
#include "aten/ops/le.h"
#include "aten/ops/linalg/gradients.h"
#include "aten/ops/linalg_det.h"
#include "aten/ops/linalg_eig.h"
#include "aten/ops/linalg_eigh.h"
#include "aten/ops/linalg_inv_ex.h"
#include "aten/ops/linalg_matrix_exp.h"
#include "aten/ops/linalg_solve.h"
#include "aten/ops/linalg_svd.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/matmul.h"
#include "aten/ops/mean.h"
#include "aten/ops/mul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/neg.h"
#include "aten/ops/ones_like.h"
#include "aten/ops/real.h"
#include "aten/ops/reciprocal.h"
#include "aten/ops/reductions/gradients.h"
#include "aten/ops/statistics/gradients.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/transpose.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/views/gradients.h"
#include "aten/ops/zeros_like.h"
#include "autograd/graph/engine.h"
#include "core/base/layers.h"

namespace treadle::autograd {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor as_row(const Tensor& t) { return aten::unsqueeze(t, -2); }
Tensor as_column(const Tensor& t) { return aten::unsqueeze(t, -1); }
// A number for each matrix.
Tensor as_matrix(const Tensor& t) { return as_column(as_column(t)); }

Tensor diagonal(const Tensor& t) { return aten::diagonal(t, 0, -2, -1); }
Tensor skew(const Tensor& t) { return aten::sub(t, aten::adjoint(t)); }

// t / e off the diagonal, 0 on it.
Tensor divided_off_diagonal(const Tensor& t, const Tensor& e) {
  const Tensor unit = aten::eye(e.size(-1), ScalarType::Bool, std::nullopt, e.device());
  return aten::div(t, aten::masked_fill(e, unit, Scalar(kInf)));
}

// Entry (i, j): values[j] - values[i].
Tensor differences(const Tensor& values) { return aten::sub(as_row(values), as_column(values)); }

// Complex vectors are determined up to a phase; a function whose value depends on it has no
// derivative. `products` are those of the vectors with their gradients.
void require_no_phase(const char* op, const Tensor& products) {
  if (!products.is_complex() || products.numel() == 0 || products.is_meta()) return;
  const NoGrad guard;
  const double turn = aten::item(aten::amax(aten::abs(aten::imag(products)))).to<double>(),
               size = aten::item(aten::amax(aten::abs(products))).to<double>();
  check<ErrorKind::Runtime>(!(turn > 1e-2 + 1e-2 * size), OpName(op),
                            "expected a function of the vectors that does not depend on their "
                            "phases, got one whose derivative along a phase is ",
                            turn);
}

// The determinant as a polynomial of the elements (Faddeev and LeVerrier): for small matrices, also
// of zeros.
Tensor det_of_polynomial(const Tensor& a) {
  const int64_t n = a.size(-1);
  const Tensor unit = aten::eye(n, a.dtype(), std::nullopt, a.device());
  Tensor product = a, coefficient;
  for (int64_t k = 1; k <= n; ++k) {
    if (k > 1)
      product = aten::matmul(a, aten::add(product, aten::mul(as_matrix(coefficient), unit)));
    coefficient = aten::div(aten::sum(diagonal(product), OptionalIntList({-1})),
                            Scalar(-static_cast<double>(k)));
  }
  return n % 2 == 0 ? coefficient : aten::neg(coefficient);
}

// The determinants of matrices some of which are singular, for derivatives of every order: between
// its singular vectors, as constants, a matrix is [B C; D E] where B has full rank, and its
// determinant is det(B) det(E - D B^-1 C), up to the phase of the vectors.
Tensor det_of_parts(const Tensor& a) {
  Tensor uh, v, phase;
  int64_t lost = 1;  // the rows that E has
  {
    const NoGrad guard;
    const auto [u, s, vh] = aten::linalg_svd(a, false);
    const bool single = to_real(a.dtype()) == ScalarType::Float32;
    const double unit =
        single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
    const Tensor least = aten::mul(aten::amax(s, IntList({-1}), true),
                                   Scalar(static_cast<double>(a.size(-1)) * unit));
    const Tensor counts = aten::sum(aten::le(s, least), OptionalIntList({-1}));
    lost = std::max(lost, aten::item(aten::amax(counts)).to<int64_t>());
    uh = aten::adjoint(u);
    v = aten::adjoint(vh);
    phase = aten::mul(aten::linalg_det(u), aten::linalg_det(vh));
  }
  const int64_t rank = a.size(-1) - lost;
  const Tensor turned = aten::matmul(uh, aten::matmul(a, v));
  const auto part = [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
    return aten::narrow(aten::narrow(turned, -2, row, rows), -1, column, columns);
  };
  Tensor rest = part(rank, lost, rank, lost);
  if (rank == 0) return aten::mul(phase, det_of_polynomial(rest));
  const Tensor b = part(0, rank, 0, rank);
  rest = aten::sub(rest, aten::matmul(part(rank, lost, 0, rank),
                                      aten::linalg_solve(b, part(0, rank, rank, lost))));
  return aten::mul(phase, aten::mul(aten::linalg_det(b), det_of_polynomial(rest)));
}

}  // namespace

Tensor det_backward(const Tensor& grad, const Tensor& a, const Tensor& det) {
  if (a.numel() == 0) return aten::zeros_like(a);
  bool singular = false;
  if (!det.is_meta()) {
    const NoGrad guard;
    singular = aten::item(aten::any(aten::eq(det, 0))).to<bool>();
  }
  if (!singular) {
    const auto [inverse, info] = aten::linalg_inv_ex(a, false);
    return aten::mul(as_matrix(aten::mul(grad, aten::conj(det))), aten::adjoint(inverse));
  }
  if (grad_enabled() && a.requires_grad())
    return autograd::grad({det_of_parts(a)}, {a}, {grad}, true, true)[0];
  // By the adjugate, that of diag(s) between the vectors: the product of all other values.
  const auto [u, s, vh] = aten::linalg_svd(a, false);
  const Tensor others = prod_backward(aten::ones_like(s), s, -1, true);
  const Tensor phase = aten::mul(aten::linalg_det(u), aten::linalg_det(vh));
  return aten::mul(as_matrix(aten::mul(grad, aten::conj(phase))),
                   aten::matmul(aten::mul(u, as_row(others)), vh));
}

Tensor slogdet_backward(TensorList grads, const Tensor& a, const Tensor& sign) {
  const bool turns = grads[0].defined() && a.is_complex();
  if (a.numel() == 0 || (!turns && !grads[1].defined())) return aten::zeros_like(a);
  Tensor g = grads[1];
  if (turns) {
    const Tensor turn = aten::mul(aten::imag(aten::mul(aten::conj(grads[0]), sign)),
                                  Scalar(std::complex<double>(0, -1)));
    g = g.defined() ? aten::add(turn, g) : turn;
  }
  const auto [inverse, info] = aten::linalg_inv_ex(a, false);
  return aten::mul(as_matrix(g), aten::adjoint(inverse));
}

Tensor eigh_backward(TensorList grads, const Tensor& a, const Tensor& values, const Tensor& vectors,
                     std::string_view uplo, bool compute_v) {
  const Tensor &g_values = grads[0], &g_vectors = grads[1];
  Tensor l = values, v = vectors;
  if (!compute_v) std::tie(l, v) = aten::linalg_eigh(a, uplo);
  const Tensor vh = aten::adjoint(v);
  if (!compute_v || !g_vectors.defined())
    return g_values.defined() ? aten::matmul(aten::mul(v, as_row(g_values)), vh)
                              : aten::zeros_like(a);
  const Tensor products = aten::matmul(vh, g_vectors);
  require_no_phase("linalg.eigh", diagonal(products));
  Tensor inner = divided_off_diagonal(products, differences(l));
  if (g_values.defined()) inner = aten::add(inner, aten::diag_embed(g_values));
  // A Hermitian matrix moves to a Hermitian one: the other part of the gradient has no meaning.
  const Tensor whole = aten::matmul(v, aten::matmul(inner, vh));
  return aten::mul(aten::add(whole, aten::adjoint(whole)), Scalar(0.5));
}

Tensor eig_backward(TensorList grads, const Tensor& a, const Tensor& values, const Tensor& vectors,
                    bool compute_v) {
  const Tensor &g_values = grads[0], &g_vectors = grads[1];
  Tensor l = values, v = vectors;
  if (!compute_v) std::tie(l, v) = aten::linalg_eig(a);
  const Tensor vh = aten::adjoint(v);
  Tensor inner;
  if (compute_v && g_vectors.defined()) {
    const Tensor products = aten::matmul(vh, g_vectors);
    require_no_phase("linalg.eig", diagonal(products));
    // The vectors keep the norm 1.
    const Tensor along = aten::matmul(vh, aten::mul(v, as_row(aten::real(diagonal(products)))));
    inner = divided_off_diagonal(aten::sub(products, along), aten::conj(differences(l)));
    if (g_values.defined()) inner = aten::add(inner, aten::diag_embed(g_values));
  } else if (g_values.defined()) {
    inner = aten::diag_embed(g_values);
  } else {
    return aten::zeros_like(a);
  }
  return to_dtype(aten::linalg_solve(vh, aten::matmul(inner, vh)), a.dtype());
}

Tensor svd_backward(TensorList grads, const Tensor& a, const Tensor& left, const Tensor& values,
                    const Tensor& right, bool full_matrices, bool compute_uv) {
  const Tensor& gs = grads[1];
  Tensor gu = compute_uv ? grads[0] : Tensor(), gvh = compute_uv ? grads[2] : Tensor();
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  // Vectors without a singular value are any that complete the others: they say nothing of `a`.
  if (full_matrices && m != n) {
    if (gu.defined()) gu = aten::narrow(gu, -1, 0, k);
    if (gvh.defined()) gvh = aten::narrow(gvh, -2, 0, k);
  }
  Tensor u = left, s = values, vh = right;
  if (!compute_uv) {
    std::tie(u, s, vh) = aten::linalg_svd(a, false);
  } else if (full_matrices && m != n) {
    u = aten::narrow(u, -1, 0, k);
    vh = aten::narrow(vh, -2, 0, k);
  }
  if (!gu.defined() && !gvh.defined())
    return gs.defined() ? aten::matmul(aten::mul(u, as_row(gs)), vh) : aten::zeros_like(a);

  const Tensor uh = aten::adjoint(u), v = aten::adjoint(vh);
  const Tensor from_u = gu.defined() ? aten::matmul(uh, gu) : Tensor();
  const Tensor from_v = gvh.defined() ? aten::adjoint(aten::matmul(gvh, v)) : Tensor();
  require_no_phase("linalg.svd", diagonal(!gu.defined()    ? from_v
                                          : !gvh.defined() ? from_u
                                                           : aten::add(from_u, from_v)));
  // s_j^2 - s_i^2, as a product so that close values lose no digits.
  const Tensor e = aten::mul(differences(s), aten::add(as_row(s), as_column(s)));
  Tensor inner;
  const auto add_to = [](Tensor& sum, const Tensor& t) {
    sum = sum.defined() ? aten::add(sum, t) : t;
  };
  if (gu.defined()) {
    const Tensor turn = skew(from_u);
    add_to(inner, aten::mul(divided_off_diagonal(turn, e), as_row(s)));
    if (a.is_complex())
      add_to(inner, aten::diag_embed(aten::div(diagonal(turn), aten::mul(s, Scalar(2)))));
  }
  if (gvh.defined()) add_to(inner, aten::mul(as_column(s), divided_off_diagonal(skew(from_v), e)));
  if (gs.defined()) add_to(inner, aten::diag_embed(gs));
  Tensor result = aten::matmul(u, aten::matmul(inner, vh));
  // The component outside the space of the vectors.
  if (gu.defined() && m > k) {
    const Tensor across = aten::sub(gu, aten::matmul(u, from_u));
    result = aten::add(result, aten::matmul(aten::div(across, as_row(s)), vh));
  }
  if (gvh.defined() && n > k) {
    const Tensor across = aten::sub(gvh, aten::matmul(aten::adjoint(from_v), vh));
    result = aten::add(result, aten::matmul(aten::div(u, as_row(s)), across));
  }
  return result;
}

Tensor matrix_exp_backward(const Tensor& grad, const Tensor& self) {
  // exp([A^H G; 0 A^H]) has the derivative of exp at A^H along G in its corner.
  const Tensor a = aten::adjoint(self);
  const int64_t n = a.size(-1);
  const Tensor block =
      aten::cat({aten::cat({a, grad}, -1), aten::cat({aten::zeros_like(a), a}, -1)}, -2);
  return aten::narrow(aten::narrow(aten::linalg_matrix_exp(block), -2, 0, n), -1, n, n);
}

Tensor cdist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                      const Tensor& result, bool second) {
  // The distance is symmetric: `x` is the side that the gradient is for.
  const Tensor &x = second ? x2 : x1, &y = second ? x1 : x2;
  const Tensor g = second ? aten::transpose(grad, -2, -1) : grad;
  const Tensor distance = second ? aten::transpose(result, -2, -1) : result;
  if (result.numel() == 0 || x.numel() == 0) return aten::zeros_like(x);
  if (p != 2) {
    const Tensor difference = aten::sub(aten::unsqueeze(x, -2), aten::unsqueeze(y, -3));
    const int64_t last = -1;
    const Tensor each = vector_norm_backward(g, difference, Scalar(p),
                                             OptionalIntList(IntList(&last, 1)), false, distance);
    return sum_to(aten::sum(each, OptionalIntList({-2})), x.sizes());
  }
  // sum_j w_ij (x_i - y_j) = x_i sum_j w_ij - (w y)_i; from the middle of the points, where the two
  // terms are of the size of the distances.
  Tensor middle;
  {
    const NoGrad guard;
    middle = aten::mean(x, OptionalIntList({-2}), true);
  }
  const Tensor zero = aten::eq(distance, 0);
  const Tensor w = aten::masked_fill(aten::div(g, aten::masked_fill(distance, zero, Scalar(1))),
                                     zero, Scalar(0));
  const Tensor sums = aten::sum(w, OptionalIntList({-1}), true);
  return sum_to(
      aten::sub(aten::mul(aten::sub(x, middle), sums), aten::matmul(w, aten::sub(y, middle))),
      x.sizes());
}

}  // namespace treadle::autograd
