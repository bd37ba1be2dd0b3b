// Derivatives of factorisations and of solutions of linear systems.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/linalg/gradients.h"

#include "aten/ops/_linalg_solve.h"
#include "aten/ops/_lu_permutation.h"
#include "aten/ops/add.h"
#include "aten/ops/adjoint.h"
#include "aten/ops/argsort.h"
#include "aten/ops/cat.h"
#include "aten/ops/conj.h"
#include "aten/ops/expand.h"
#include "aten/ops/eye.h"
#include "aten/ops/gather.h"
#include "aten/ops/linalg/shape.h"
#include "aten/ops/linalg_pinv.h"
#include "aten/ops/linalg_solve_triangular.h"
#include "aten/ops/matmul.h"
#include "aten/ops/mul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/neg.h"
#include "aten/ops/select.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/stack.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/tril.h"
#include "aten/ops/triu.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/views/gradients.h"
#include "aten/ops/zeros_like.h"

namespace treadle::autograd {
namespace {

// X with A X = B, and X with X A = B, where A is triangular.
Tensor solved_left(const Tensor& a, const Tensor& b, bool upper, bool unit = false) {
  return aten::linalg_solve_triangular(a, b, upper, true, unit);
}
Tensor solved_right(const Tensor& a, const Tensor& b, bool upper, bool unit = false) {
  return aten::linalg_solve_triangular(a, b, upper, false, unit);
}

Tensor columns(const Tensor& t, int64_t first, int64_t count) {
  return aten::narrow(t, -1, first, count);
}
Tensor rows(const Tensor& t, int64_t first, int64_t count) {
  return aten::narrow(t, -2, first, count);
}

Tensor unit_lower(const Tensor& t) {
  return aten::add(aten::tril(t, -1),
                   aten::eye(t.size(-2), t.size(-1), t.dtype(), std::nullopt, t.device()));
}

// The upper triangle made Hermitian: M above the diagonal, its conjugate transpose below, the real
// part on it.
Tensor hermitian_from_upper(const Tensor& m) {
  const Tensor half = aten::mul(aten::add(aten::triu(m, 1), aten::triu(m, 0)), Scalar(0.5));
  return aten::add(half, aten::adjoint(half));
}

// Gradients of Y = H_1 H_2 ... X, reflections H = I - tau v v^H applied in `order`, by that of Y.
struct ReflectorGradients {
  Tensor vectors, tau, x;
};

ReflectorGradients reflectors_backward(const Tensor& grad, const Tensor& vectors, const Tensor& tau,
                                       const Tensor& start, bool adjoint) {
  const int64_t k = tau.size(-1);
  const Tensor v = unit_lower(columns(vectors, 0, k));
  const auto vector = [&](int64_t i) { return columns(v, i, 1); };
  const auto factor = [&](int64_t i) {
    const Tensor t = aten::unsqueeze(columns(tau, i, 1), -1);
    return adjoint ? aten::conj(t) : t;
  };
  // Q X applies the last reflection first, Q^H X the first one.
  const auto step = [&](int64_t n) { return adjoint ? n : k - 1 - n; };
  std::vector<Tensor> states = {start};
  for (int64_t n = 0; n + 1 < k; ++n) {
    const Tensor w = vector(step(n)), x = states.back();
    states.push_back(aten::sub(
        x, aten::mul(factor(step(n)), aten::matmul(w, aten::matmul(aten::adjoint(w), x)))));
  }
  std::vector<Tensor> of_vectors(k), of_tau(k);
  Tensor g = grad;
  for (int64_t n = k; n-- > 0;) {
    const int64_t i = step(n);
    const Tensor w = vector(i), t = factor(i), x = states[n];
    const Tensor from_x = aten::matmul(aten::adjoint(w), x),
                 from_g = aten::matmul(aten::adjoint(w), g);
    const Tensor of_factor =
        aten::neg(aten::sum(aten::mul(aten::conj(from_x), from_g), OptionalIntList({-2, -1})));
    of_tau[i] = adjoint ? aten::conj(of_factor) : of_factor;
    of_vectors[i] =
        aten::neg(aten::add(aten::mul(aten::conj(t), aten::matmul(g, aten::adjoint(from_x))),
                            aten::mul(t, aten::matmul(x, aten::adjoint(from_g)))));
    g = aten::sub(g, aten::mul(aten::conj(t), aten::matmul(w, from_g)));
  }
  if (k == 0) return {aten::zeros_like(vectors), aten::zeros_like(tau), g};
  // The elements on and above the diagonal of the vectors, and those after the last one, are not
  // read.
  Tensor all = aten::tril(aten::cat(of_vectors, -1), -1);
  if (k < vectors.size(-1))
    all = aten::cat({all, aten::zeros_like(columns(vectors, k, vectors.size(-1) - k))}, -1);
  return {all, aten::stack(of_tau, -1), g};
}

}  // namespace

Tensor lu_backward(const Tensor& grad, const Tensor& lu, const Tensor& pivots) {
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  if (k == 0) return aten::zeros_like(lu);
  const Tensor packed = rows(columns(lu, 0, k), 0, k);
  const Tensor l = unit_lower(packed), u = aten::triu(packed, 0);
  Tensor gl = aten::tril(rows(columns(grad, 0, k), 0, k), -1),
         gu = aten::triu(rows(columns(grad, 0, k), 0, k), 0);
  Tensor rest;
  if (m < n) {  // U = [U1 U2] with U2 = L^-1 A2
    rest = solved_left(aten::adjoint(l), columns(grad, k, n - k), true, true);
    gl = aten::sub(gl, aten::matmul(rest, aten::adjoint(columns(lu, k, n - k))));
  } else if (m > n) {  // L = [L1; L2] with L2 = A2 U^-1
    rest = solved_right(aten::adjoint(u), rows(grad, k, m - k), false);
    gu = aten::sub(gu, aten::matmul(aten::adjoint(rows(lu, k, m - k)), rest));
  }
  const Tensor middle = aten::add(aten::tril(aten::matmul(aten::adjoint(l), gl), -1),
                                  aten::triu(aten::matmul(gu, aten::adjoint(u)), 0));
  Tensor result =
      solved_left(aten::adjoint(l), solved_right(aten::adjoint(u), middle, false), true, true);
  if (rest.defined()) result = aten::cat({result, rest}, m < n ? -1 : -2);
  // Row i of the factors is row order[i] of A.
  const Tensor back = aten::argsort(aten::_lu_permutation(pivots, m), -1, false);
  return aten::gather(result, -2, aten::expand(aten::unsqueeze(back, -1), result.sizes()));
}

Tensor cholesky_backward(const Tensor& grad, const Tensor& factor, bool upper) {
  const Tensor l = upper ? aten::adjoint(factor) : factor;
  const Tensor x = aten::matmul(aten::adjoint(l), upper ? aten::adjoint(grad) : grad);
  const Tensor half = aten::mul(aten::add(aten::tril(x, 0), aten::tril(x, -1)), Scalar(0.5));
  const Tensor g = solved_right(l, solved_left(aten::adjoint(l), half, true), false);
  return aten::mul(aten::add(g, aten::adjoint(g)), Scalar(0.5));
}

Tensor qr_backward(TensorList grads, const Tensor& q, const Tensor& r, std::string_view mode) {
  check<ErrorKind::Runtime>(mode != "r", OpName("linalg.qr"),
                            "expected mode 'reduced' where a gradient is needed, got "
                            "'r', which leaves out Q");
  const int64_t m = q.size(-2), n = r.size(-1);
  check<ErrorKind::Runtime>(mode != "complete" || m <= n, OpName("linalg.qr"),
                            "expected mode 'reduced' where a gradient of matrices with "
                            "more rows than columns is needed, got 'complete'");
  Tensor gq = grads[0].defined() ? grads[0] : aten::zeros_like(q);
  Tensor gr = grads[1].defined() ? grads[1] : aten::zeros_like(r);
  Tensor u = r, rest;
  if (m < n) {  // A = [X Y], R = [U V] with X = Q U and V = Q^H Y
    const Tensor v = columns(r, m, n - m), gv = columns(gr, m, n - m);
    rest = aten::matmul(q, gv);
    gq = aten::add(gq, aten::matmul(aten::matmul(q, v), aten::adjoint(gv)));
    u = columns(r, 0, m);
    gr = columns(gr, 0, m);
  }
  const Tensor middle = hermitian_from_upper(
      aten::sub(aten::matmul(gr, aten::adjoint(u)), aten::matmul(aten::adjoint(q), gq)));
  const Tensor g = solved_right(aten::adjoint(u), aten::add(gq, aten::matmul(q, middle)), false);
  return rest.defined() ? aten::cat({g, rest}, -1) : g;
}

std::tuple<Tensor, Tensor> householder_product_backward(const Tensor& grad, const Tensor& vectors,
                                                        const Tensor& tau) {
  DimVector sizes(vectors.sizes());
  const Tensor unit = aten::expand(
      aten::eye(vectors.size(-2), vectors.size(-1), grad.dtype(), std::nullopt, grad.device()),
      sizes);
  const auto g = reflectors_backward(grad, vectors, tau, unit, false);
  return {g.vectors, g.tau};
}

std::tuple<Tensor, Tensor, Tensor> ormqr_backward(const Tensor& grad, const Tensor& vectors,
                                                  const Tensor& tau, const Tensor& other, bool left,
                                                  bool transpose) {
  if (left) {
    const auto g = reflectors_backward(grad, vectors, tau, other, transpose);
    return {g.vectors, g.tau, g.x};
  }
  // (X Q)^H = Q^H X^H
  const auto g =
      reflectors_backward(aten::adjoint(grad), vectors, tau, aten::adjoint(other), !transpose);
  return {g.vectors, g.tau, aten::adjoint(g.x)};
}

std::tuple<Tensor, Tensor> solve_backward(const Tensor& grad, const Tensor& a, const Tensor& b,
                                          const Tensor& result, bool left,
                                          std::array<bool, 2> grad_input_mask) {
  const bool vector = shape::is_vector_rhs(a, b);
  const Tensor g = vector ? aten::unsqueeze(grad, -1) : grad;
  const Tensor x = vector ? aten::unsqueeze(result, -1) : result;
  const Tensor gb = std::get<0>(aten::_linalg_solve(aten::adjoint(a), g, left));
  Tensor ga;
  if (grad_input_mask[0]) {
    const Tensor product =
        left ? aten::matmul(gb, aten::adjoint(x)) : aten::matmul(aten::adjoint(x), gb);
    ga = sum_to(aten::neg(product), a.sizes());
  }
  if (!grad_input_mask[1]) return {ga, Tensor()};
  return {ga, sum_to(vector ? aten::squeeze(gb, -1) : gb, b.sizes())};
}

std::tuple<Tensor, Tensor> solve_triangular_backward(const Tensor& grad, const Tensor& a,
                                                     IntList b_sizes, const Tensor& result,
                                                     bool upper, bool left, bool unitriangular,
                                                     std::array<bool, 2> grad_input_mask) {
  const Tensor gb =
      aten::linalg_solve_triangular(aten::adjoint(a), grad, !upper, left, unitriangular);
  Tensor ga;
  if (grad_input_mask[0]) {
    const Tensor product = aten::neg(left ? aten::matmul(gb, aten::adjoint(result))
                                          : aten::matmul(aten::adjoint(result), gb));
    const int64_t offset = unitriangular ? 1 : 0;
    ga = sum_to(upper ? aten::triu(product, offset) : aten::tril(product, -offset), a.sizes());
  }
  return {ga, grad_input_mask[1] ? sum_to(gb, b_sizes) : Tensor()};
}

std::tuple<Tensor, Tensor> lstsq_backward(const Tensor& grad, const Tensor& a, const Tensor& b,
                                          std::array<bool, 2> grad_input_mask) {
  // X = A^+ B
  const Tensor inverse =
      aten::linalg_pinv(a, std::optional<double>(), std::optional<double>(), false);
  Tensor ga, gb;
  if (grad_input_mask[0]) {
    const Tensor of_inverse = sum_to(aten::matmul(grad, aten::adjoint(b)), inverse.sizes());
    ga = pinv_backward(of_inverse, a, inverse);
  }
  if (grad_input_mask[1]) gb = sum_to(aten::matmul(aten::adjoint(inverse), grad), b.sizes());
  return {ga, gb};
}

Tensor inv_backward(const Tensor& grad, const Tensor& inverse) {
  const Tensor x = aten::adjoint(inverse);
  return aten::neg(aten::matmul(x, aten::matmul(grad, x)));
}

Tensor pinv_backward(const Tensor& grad, const Tensor& self, const Tensor& inverse) {
  const Tensor g = aten::adjoint(grad), inverse_h = aten::adjoint(inverse);
  // dX = -X dA X + X X^H dA^H (I - A X) + (I - X A) dA^H X^H X; products of the smaller size first.
  if (self.size(-2) <= self.size(-1)) {
    const Tensor k = aten::matmul(g, inverse), kx = aten::matmul(k, inverse_h);
    const Tensor first = aten::sub(kx, aten::adjoint(aten::matmul(inverse, k)));
    const Tensor second = aten::matmul(aten::matmul(self, inverse), kx);
    const Tensor third =
        aten::matmul(aten::matmul(inverse_h, inverse), aten::sub(g, aten::matmul(k, self)));
    return aten::add(aten::sub(first, second), third);
  }
  const Tensor k = aten::matmul(inverse, g), xk = aten::matmul(inverse_h, k);
  const Tensor first = aten::sub(xk, aten::adjoint(aten::matmul(k, inverse)));
  const Tensor second = aten::matmul(aten::matmul(xk, inverse), self);
  const Tensor third =
      aten::matmul(aten::matmul(aten::sub(g, aten::matmul(self, k)), inverse), inverse_h);
  return aten::add(aten::sub(first, second), third);
}

}  // namespace treadle::autograd
