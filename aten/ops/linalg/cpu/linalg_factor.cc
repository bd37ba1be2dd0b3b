// Factors of matrices: LU, Cholesky, LDL and the Householder reflectors of QR.
//
// A matrix with NaN or infinity has factors of NaN, because LAPACK's choice of pivots does not
// handle them.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_linalg_cholesky.h"
#include "aten/ops/_linalg_ldl.h"
#include "aten/ops/_linalg_lu.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/geqrf.h"
#include "aten/ops/linalg/cpu/linalg.h"
#include "aten/ops/linalg_householder_product.h"
#include "aten/ops/linalg_qr.h"
#include "aten/ops/ormqr.h"

namespace treadle::cpu {
namespace {

template <class T>
void linalg_lu_cpu(const Tensor& a, const Tensor& lu, const Tensor& pivots, const Tensor& info) {
  const Tensor input = own_matrices(a);
  const MatrixBatch b(input);
  const int m = lapack_size(b.rows), n = lapack_size(b.columns);
  const int64_t k = std::min(b.rows, b.columns);
  for_each_matrix(b.count, cube(k) + b.numel(), [&](int64_t begin, int64_t end) {
    const WorkSpace<T> columns(b.numel());
    for (int64_t i = begin; i < end; ++i) {
      const T* from = input.data_as<T>() + i * b.numel();
      T* to = lu.data_as<T>() + i * b.numel();
      int* pivot = pivots.data_as<int>() + i * k;
      int& failed = info.data_as<int>()[i];
      failed = 0;
      if (k == 0) continue;
      if (!all_finite(from, b.numel())) {
        std::fill_n(to, b.numel(), quiet_nan<T>());
        for (int64_t j = 0; j < k; ++j) pivot[j] = static_cast<int>(j + 1);
        continue;
      }
      transpose_copy(from, b.rows, b.columns, b.columns, columns.data(), b.rows);
      failed = lapack::getrf(m, n, columns.data(), m, pivot);
      transpose_copy(columns.data(), b.columns, b.rows, b.rows, to, b.columns);
    }
  });
}

template <class T>
void linalg_cholesky_cpu(const Tensor& self, bool upper, const Tensor& out, const Tensor& info) {
  const Tensor input = aten::contiguous(self);
  const MatrixBatch b(input);
  const int n = lapack_size(b.rows);
  for_each_matrix(b.count, cube(n) / 3 + b.numel(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = input.data_as<T>() + i * b.numel();
      T* to = out.data_as<T>() + i * b.numel();
      int& failed = info.data_as<int>()[i];
      failed = 0;
      if (n == 0) continue;
      // The triangle that is read, the other one zero.
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t c = 0; c < n; ++c)
          to[r * n + c] = (upper ? c >= r : c <= r) ? from[r * n + c] : T(0);
      }
      if (!all_finite(to, b.numel())) {
        failed = 1;
        std::fill_n(to, b.numel(), quiet_nan<T>());
        continue;
      }
      // Rows read as columns are the transposed matrix, whose other triangle holds the conjugates;
      // L L^H = A and conj(L) L^T = conj(A) have conjugate factors, so nothing needs to be moved.
      failed = lapack::potrf(upper ? 'L' : 'U', n, to, n);
    }
  });
}

template <class T>
void linalg_ldl_cpu(const Tensor& self, bool hermitian, const Tensor& ld, const Tensor& pivots,
                    const Tensor& info) {
  const Tensor input = aten::contiguous(self);
  const MatrixBatch b(input);
  const int n = lapack_size(b.rows);
  for_each_matrix(b.count, cube(n) / 3 + b.numel(), [&](int64_t begin, int64_t end) {
    lapack::Work<T> work;
    const WorkSpace<T> columns(b.numel());
    for (int64_t i = begin; i < end; ++i) {
      const T* from = input.data_as<T>() + i * b.numel();
      T* to = ld.data_as<T>() + i * b.numel();
      int* pivot = pivots.data_as<int>() + i * n;
      int& failed = info.data_as<int>()[i];
      failed = 0;
      if (n == 0) continue;
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t c = 0; c < n; ++c) columns[c * n + r] = c <= r ? from[r * n + c] : T(0);
      }
      if (!all_finite(columns.data(), b.numel())) {
        std::fill_n(to, b.numel(), quiet_nan<T>());
        for (int j = 0; j < n; ++j) pivot[j] = j + 1;
        continue;
      }
      failed = lapack::sytrf(hermitian, 'L', n, columns.data(), n, pivot, work);
      transpose_copy(columns.data(), n, n, n, to, n);
    }
  });
}

template <class T>
void geqrf_cpu(const Tensor& self, const Tensor& a, const Tensor& tau) {
  const Tensor input = aten::contiguous(self);
  const MatrixBatch b(input);
  const int m = lapack_size(b.rows), n = lapack_size(b.columns);
  const int64_t k = std::min(b.rows, b.columns);
  if (k == 0) return;
  for_each_matrix(b.count, static_cast<double>(b.numel()) * k, [&](int64_t begin, int64_t end) {
    lapack::Work<T> work;
    const WorkSpace<T> columns(b.numel());
    for (int64_t i = begin; i < end; ++i) {
      transpose_copy(input.data_as<T>() + i * b.numel(), m, n, n, columns.data(), m);
      lapack::geqrf(m, n, columns.data(), m, tau.data_as<T>() + i * k, work);
      transpose_copy(columns.data(), n, m, m, a.data_as<T>() + i * b.numel(), n);
    }
  });
}

template <class T>
void linalg_qr_cpu(const Tensor& a, std::string_view mode, const Tensor& q, const Tensor& r) {
  const Tensor input = aten::contiguous(a);
  const MatrixBatch b(input);
  const int64_t m = b.rows, n = b.columns, k = std::min(m, n);
  const bool wants_q = mode != "r";
  const int64_t kept = r.size(-2);  // rows of R, columns of Q
  if (k == 0) {
    std::fill_n(r.data_as<T>(), r.numel(), T(0));
    if (!wants_q) return;
    std::fill_n(q.data_as<T>(), q.numel(), T(0));
    for (int64_t i = 0; i < b.count; ++i) {
      for (int64_t j = 0; j < kept; ++j) q.data_as<T>()[(i * m + j) * kept + j] = T(1);
    }
    return;
  }
  const double cost = static_cast<double>(m) * std::max(n, kept) * k;
  for_each_matrix(b.count, cost, [&](int64_t begin, int64_t end) {
    lapack::Work<T> work;
    // The number of columns is the larger of those of A and Q.
    const WorkSpace<T> columns(m * std::max(n, wants_q ? kept : n)), tau(k);
    for (int64_t i = begin; i < end; ++i) {
      transpose_copy(input.data_as<T>() + i * m * n, m, n, n, columns.data(), m);
      lapack::geqrf(lapack_size(m), lapack_size(n), columns.data(), lapack_size(m), tau.data(),
                    work);
      T* const upper = r.data_as<T>() + i * kept * n;
      for (int64_t row = 0; row < kept; ++row) {
        for (int64_t c = 0; c < n; ++c) upper[row * n + c] = row <= c ? columns[c * m + row] : T(0);
      }
      if (!wants_q) continue;
      lapack::orgqr(lapack_size(m), lapack_size(kept), lapack_size(k), columns.data(),
                    lapack_size(m), tau.data(), work);
      transpose_copy(columns.data(), kept, m, m, q.data_as<T>() + i * m * kept, kept);
    }
  });
}

template <class T>
void householder_product_cpu(const Tensor& input, const Tensor& tau, const Tensor& out) {
  const Tensor vectors = aten::contiguous(input), factors = aten::contiguous(tau);
  const MatrixBatch b(vectors);
  const int m = lapack_size(b.rows), n = lapack_size(b.columns), k = lapack_size(factors.size(-1));
  if (b.numel() == 0) return;
  for_each_matrix(b.count, static_cast<double>(b.numel()) * n, [&](int64_t begin, int64_t end) {
    lapack::Work<T> work;
    const WorkSpace<T> columns(b.numel());
    for (int64_t i = begin; i < end; ++i) {
      transpose_copy(vectors.data_as<T>() + i * b.numel(), m, n, n, columns.data(), m);
      lapack::orgqr(m, n, k, columns.data(), m, factors.data_as<T>() + i * k, work);
      transpose_copy(columns.data(), n, m, m, out.data_as<T>() + i * b.numel(), n);
    }
  });
}

template <class T>
void ormqr_cpu(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left,
               bool transpose, const Tensor& out) {
  const Tensor vectors = aten::contiguous(self), factors = aten::contiguous(input2),
               other = aten::contiguous(input3);
  const MatrixBatch v(vectors), c(other);
  const int k = lapack_size(factors.size(-1)), m = lapack_size(c.rows), n = lapack_size(c.columns);
  if (c.numel() == 0) return;
  if (k == 0) {
    std::copy_n(other.data_as<T>(), other.numel(), out.data_as<T>());
    return;
  }
  for_each_matrix(c.count, static_cast<double>(c.numel()) * k, [&](int64_t begin, int64_t end) {
    lapack::Work<T> work;
    const WorkSpace<T> reflectors(v.numel()), columns(c.numel());
    for (int64_t i = begin; i < end; ++i) {
      transpose_copy(vectors.data_as<T>() + i * v.numel(), v.rows, v.columns, v.columns,
                     reflectors.data(), v.rows);
      transpose_copy(other.data_as<T>() + i * c.numel(), m, n, n, columns.data(), m);
      lapack::ormqr(left ? 'L' : 'R', transpose ? 'C' : 'N', m, n, k, reflectors.data(),
                    lapack_size(v.rows), factors.data_as<T>() + i * k, columns.data(), m, work);
      transpose_copy(columns.data(), n, m, m, out.data_as<T>() + i * c.numel(), n);
    }
  });
}

const auto lu_registered = register_kernels<aten::ops::_linalg_lu, DeviceType::CPU>(
    []<class T>() { return &linalg_lu_cpu<T>; }, "linalg_lu_cpu");
const auto cholesky_registered = register_kernels<aten::ops::_linalg_cholesky, DeviceType::CPU>(
    []<class T>() { return &linalg_cholesky_cpu<T>; }, "linalg_cholesky_cpu");
const auto ldl_registered = register_kernels<aten::ops::_linalg_ldl, DeviceType::CPU>(
    []<class T>() { return &linalg_ldl_cpu<T>; }, "linalg_ldl_cpu");
const auto geqrf_registered = register_kernels<aten::ops::geqrf, DeviceType::CPU>(
    []<class T>() { return &geqrf_cpu<T>; }, "geqrf_cpu");
const auto qr_registered = register_kernels<aten::ops::linalg_qr, DeviceType::CPU>(
    []<class T>() { return &linalg_qr_cpu<T>; }, "linalg_qr_cpu");
const auto householder_registered =
    register_kernels<aten::ops::linalg_householder_product, DeviceType::CPU>(
        []<class T>() { return &householder_product_cpu<T>; }, "householder_product_cpu");
const auto ormqr_registered = register_kernels<aten::ops::ormqr, DeviceType::CPU>(
    []<class T>() { return &ormqr_cpu<T>; }, "ormqr_cpu");

}  // namespace
}  // namespace treadle::cpu
