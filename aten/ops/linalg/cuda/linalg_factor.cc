// Factors of matrices by cuSOLVER: LU, Cholesky, QR and its Householder reflectors. The host never
// waits: failures are in `info`, on the device.
//
// A matrix with NaN or infinity has factors of NaN, as on the CPU. The library sees zeros in its
// place.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/libraries/solver.h"
#include "aten/ops/_linalg_cholesky.h"
#include "aten/ops/_linalg_lu.h"
#include "aten/ops/arange.h"
#include "aten/ops/copy_.h"
#include "aten/ops/eye.h"
#include "aten/ops/geqrf.h"
#include "aten/ops/linalg/cuda/small_factors.h"
#include "aten/ops/linalg_householder_product.h"
#include "aten/ops/linalg_qr.h"
#include "aten/ops/narrow.h"
#include "aten/ops/ormqr.h"
#include "aten/ops/reshape.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/tril.h"
#include "aten/ops/triu.h"
#include "aten/ops/where.h"
#include "aten/ops/zero_.h"

namespace treadle::cuda {
namespace {

const Scalar kNaN(std::numeric_limits<double>::quiet_NaN());

template <class T>
void large_lu(const Tensor& a, const Tensor& lu, const Tensor& pivots, const Tensor& info) {
  const Matrices b(a);
  const int64_t k = std::min(b.rows, b.columns);
  const Tensor columns = in_columns(a);
  const Tensor rows = empty_tensor(pivots.sizes(), ScalarType::Int64, a.device());
  const Solver solver(a.device());
  solver.run(
      "an LU factorisation",
      [&](Workspace& w) {
        return cusolver().lu_size(solver.handle(), solver.params(), b.rows, b.columns,
                                  solver_type<T>, columns.data(), b.rows, solver_type<T>,
                                  &w.on_device, &w.on_host);
      },
      b.count,
      [&](const Workspace& w, int64_t i) {
        return cusolver().lu(solver.handle(), solver.params(), b.rows, b.columns, solver_type<T>,
                             columns.data_as<T>() + i * b.numel(), b.rows,
                             rows.data_as<int64_t>() + i * k, solver_type<T>, w.device, w.on_device,
                             w.host, w.on_host, info.data_as<int>() + i);
      });
  aten::copy_(lu, aten::transpose(columns, -2, -1));
  aten::copy_(pivots, rows);
}

template <class T>
void linalg_lu_cuda(const Tensor& a, const Tensor& lu, const Tensor& pivots, const Tensor& info) {
  const Matrices b(a);
  const int64_t k = std::min(b.rows, b.columns);
  if (k == 0 || b.count == 0) {
    aten::zero_(info);
    return;
  }
  const Tensor finite = finite_matrices(a);
  const Tensor sound_matrices = aten::contiguous(aten::where(finite, a, Scalar(0)));
  if (suits_small_factors(b.count, b.rows, b.columns, a.element_size()))
    small_lu<T>(sound_matrices, lu, pivots, info);
  else
    large_lu<T>(sound_matrices, lu, pivots, info);
  const Tensor sound = aten::squeeze(finite, -1);
  aten::copy_(lu, aten::where(finite, lu, kNaN));
  const Tensor straight = aten::arange(1, k + 1, ScalarType::Int64, std::nullopt, a.device());
  aten::copy_(pivots, aten::where(sound, pivots, straight));
  aten::copy_(info, aten::where(aten::squeeze(sound, -1), info, Scalar(0)));
}

template <class T>
void linalg_cholesky_cuda(const Tensor& self, bool upper, const Tensor& out, const Tensor& info) {
  const Matrices b(self);
  const int64_t n = b.rows;
  if (n == 0 || b.count == 0) {
    aten::zero_(info);
    return;
  }
  const Tensor read = upper ? aten::triu(self) : aten::tril(self);
  const Tensor finite = finite_matrices(read);
  const Tensor factor = aten::contiguous(aten::where(finite, read, Scalar(0)));
  // Rows read as columns are the transposed matrix, whose other triangle holds the conjugates;
  // L L^H = A and conj(L) L^T = conj(A) have conjugate factors, so nothing needs to be moved.
  const cublasFillMode_t triangle = upper ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
  const Solver solver(self.device());
  if (b.count == 1) {
    solver.run(
        "a Cholesky factorisation",
        [&](Workspace& w) {
          return cusolver().cholesky_size(solver.handle(), solver.params(), triangle, n,
                                          solver_type<T>, factor.data(), n, solver_type<T>,
                                          &w.on_device, &w.on_host);
        },
        1,
        [&](const Workspace& w, int64_t) {
          return cusolver().cholesky(solver.handle(), solver.params(), triangle, n, solver_type<T>,
                                     factor.data(), n, solver_type<T>, w.device, w.on_device,
                                     w.host, w.on_host, info.data_as<int>());
        });
  } else {
    const auto first = reinterpret_cast<int64_t>(factor.data());
    const int64_t step = b.numel() * factor.element_size();
    const Tensor addresses = aten::arange(first, first + b.count * step, step, ScalarType::Int64,
                                          std::nullopt, self.device());
    succeed_cusolver(typed_cusolver<T>().batched_cholesky(
                         solver.handle(), triangle, solver_int(n),
                         reinterpret_cast<typename SolverElement<T>::type**>(addresses.data()),
                         solver_int(n), info.data_as<int>(), solver_int(b.count)),
                     "a Cholesky factorisation");
  }
  // The library uses the other triangle to work in.
  const Tensor kept = upper ? aten::triu(factor) : aten::tril(factor);
  aten::copy_(out, aten::where(finite, kept, kNaN));
  aten::copy_(info, aten::where(aten::squeeze(aten::squeeze(finite, -1), -1), info, Scalar(1)));
}

// Turns matrices by columns into R and the reflectors below it.
template <class T>
void reflect(const Solver& solver, int64_t rows, int64_t columns, int64_t count, int64_t stride,
             const Tensor& matrices, const Tensor& tau) {
  if (suits_small_factors(count, rows, columns, matrices.element_size())) {
    small_reflect<T>(rows, columns, count, stride, matrices, tau);
    return;
  }
  const int64_t k = std::min(rows, columns);
  const Tensor info = empty_tensor({1}, ScalarType::Int32, matrices.device());
  solver.run(
      "a QR factorisation",
      [&](Workspace& w) {
        return cusolver().qr_size(solver.handle(), solver.params(), rows, columns, solver_type<T>,
                                  matrices.data(), rows, solver_type<T>, tau.data(), solver_type<T>,
                                  &w.on_device, &w.on_host);
      },
      count,
      [&](const Workspace& w, int64_t i) {
        return cusolver().qr(solver.handle(), solver.params(), rows, columns, solver_type<T>,
                             matrices.data_as<T>() + i * stride, rows, solver_type<T>,
                             tau.data_as<T>() + i * k, solver_type<T>, w.device, w.on_device,
                             w.host, w.on_host, info.data_as<int>());
      });
}

// Turns `k` reflectors in the first columns into the first `columns` columns of their product.
template <class T>
void multiply_out(const Solver& solver, int64_t rows, int64_t columns, int64_t k, int64_t count,
                  int64_t stride, const Tensor& matrices, const Tensor& tau) {
  if (suits_small_factors(count, rows, k, matrices.element_size())) {
    small_product<T>(rows, columns, k, count, stride, matrices, tau);
    return;
  }
  const int m = solver_int(rows), n = solver_int(columns), used = solver_int(k);
  const Tensor info = empty_tensor({1}, ScalarType::Int32, matrices.device());
  int units = 0;
  solver.run(
      "a product of reflectors",
      [&](Workspace& w) {
        const cusolverStatus_t code = typed_cusolver<T>().product_size(
            solver.handle(), m, n, used, element_pointer<T>(matrices), m, element_pointer<T>(tau),
            &units);
        w.on_device = static_cast<size_t>(units);
        return code;
      },
      count,
      [&](const Workspace& w, int64_t i) {
        return typed_cusolver<T>().product(
            solver.handle(), m, n, used, element_pointer<T>(matrices, i * stride), m,
            element_pointer<T>(tau, i * k), static_cast<typename SolverElement<T>::type*>(w.device),
            units, info.data_as<int>());
      },
      sizeof(T));
}

template <class T>
void geqrf_cuda(const Tensor& self, const Tensor& a, const Tensor& tau) {
  if (self.numel() == 0) return;
  const Matrices b(self);
  const Tensor columns = in_columns(self);
  reflect<T>(Solver(self.device()), b.rows, b.columns, b.count, b.numel(), columns, tau);
  aten::copy_(a, aten::transpose(columns, -2, -1));
}

template <class T>
void linalg_qr_cuda(const Tensor& a, std::string_view mode, const Tensor& q, const Tensor& r) {
  const Matrices b(a);
  const int64_t m = b.rows, n = b.columns, k = std::min(m, n);
  const bool wants_q = mode != "r";
  const int64_t kept = r.size(-2);  // rows of R, columns of Q
  if (k == 0 || b.count == 0) {
    aten::zero_(r);
    if (wants_q && q.numel() > 0)
      aten::copy_(q, aten::eye(m, kept, q.dtype(), std::nullopt, q.device()));
    return;
  }
  // The number of columns is the larger of those of A and Q.
  const int64_t width = wants_q ? std::max(n, kept) : n;
  const Tensor matrices = empty_tensor({b.count, width, m}, a.dtype(), a.device());
  const Tensor tau = empty_tensor({b.count, k}, a.dtype(), a.device());
  const Tensor factored = aten::narrow(matrices, -2, 0, n);
  aten::copy_(factored, aten::transpose(aten::reshape(a, {b.count, m, n}), -2, -1));
  const Solver solver(a.device());
  reflect<T>(solver, m, n, b.count, m * width, matrices, tau);
  const Tensor top = aten::narrow(aten::transpose(factored, -2, -1), -2, 0, kept);
  aten::copy_(r, aten::reshape(aten::triu(top), r.sizes()));
  if (!wants_q) return;
  multiply_out<T>(solver, m, kept, k, b.count, m * width, matrices, tau);
  const Tensor unitary = aten::transpose(aten::narrow(matrices, -2, 0, kept), -2, -1);
  aten::copy_(q, aten::reshape(unitary, q.sizes()));
}

template <class T>
void householder_product_cuda(const Tensor& input, const Tensor& tau, const Tensor& out) {
  if (input.numel() == 0) return;
  const Matrices b(input);
  const int64_t k = tau.size(-1);
  if (k == 0) {
    aten::copy_(out, aten::eye(b.rows, b.columns, out.dtype(), std::nullopt, out.device()));
    return;
  }
  const Tensor columns = in_columns(input), factors = aten::contiguous(tau);
  multiply_out<T>(Solver(input.device()), b.rows, b.columns, k, b.count, b.numel(), columns,
                  factors);
  aten::copy_(out, aten::transpose(columns, -2, -1));
}

template <class T>
void ormqr_cuda(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left,
                bool transpose, const Tensor& out) {
  if (input3.numel() == 0) return;
  const Matrices v(self), c(input3);
  const int k = solver_int(input2.size(-1)), m = solver_int(c.rows), n = solver_int(c.columns);
  if (k == 0) {
    aten::copy_(out, input3);
    return;
  }
  const Tensor reflectors = in_columns(self), columns = in_columns(input3),
               factors = aten::contiguous(input2);
  const cublasSideMode_t side = left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
  const cublasOperation_t operation = !transpose           ? CUBLAS_OP_N
                                      : is_complex_type<T> ? CUBLAS_OP_C
                                                           : CUBLAS_OP_T;
  const int leading = solver_int(v.rows);
  const Tensor info = empty_tensor({1}, ScalarType::Int32, self.device());
  const Solver solver(self.device());
  int units = 0;
  solver.run(
      "a product with reflectors",
      [&](Workspace& w) {
        const cusolverStatus_t code = typed_cusolver<T>().multiply_size(
            solver.handle(), side, operation, m, n, k, element_pointer<T>(reflectors), leading,
            element_pointer<T>(factors), element_pointer<T>(columns), m, &units);
        w.on_device = static_cast<size_t>(units);
        return code;
      },
      c.count,
      [&](const Workspace& w, int64_t i) {
        return typed_cusolver<T>().multiply(
            solver.handle(), side, operation, m, n, k,
            element_pointer<T>(reflectors, i * v.numel()), leading,
            element_pointer<T>(factors, i * k), element_pointer<T>(columns, i * c.numel()), m,
            static_cast<typename SolverElement<T>::type*>(w.device), units, info.data_as<int>());
      },
      sizeof(T));
  aten::copy_(out, aten::transpose(columns, -2, -1));
}

using Solved = TypeList<float, double, std::complex<float>, std::complex<double>>;

const auto lu_registered = register_cuda<aten::ops::_linalg_lu>(
    Solved(), []<class T>() { return &linalg_lu_cuda<T>; }, "linalg_lu_cuda");
const auto cholesky_registered = register_cuda<aten::ops::_linalg_cholesky>(
    Solved(), []<class T>() { return &linalg_cholesky_cuda<T>; }, "linalg_cholesky_cuda");
const auto geqrf_registered = register_cuda<aten::ops::geqrf>(
    Solved(), []<class T>() { return &geqrf_cuda<T>; }, "geqrf_cuda");
const auto qr_registered = register_cuda<aten::ops::linalg_qr>(
    Solved(), []<class T>() { return &linalg_qr_cuda<T>; }, "linalg_qr_cuda");
const auto householder_registered = register_cuda<aten::ops::linalg_householder_product>(
    Solved(), []<class T>() { return &householder_product_cuda<T>; }, "householder_product_cuda");
const auto ormqr_registered = register_cuda<aten::ops::ormqr>(
    Solved(), []<class T>() { return &ormqr_cuda<T>; }, "ormqr_cuda");

}  // namespace
}  // namespace treadle::cuda
