// Householder's reflectors, and the Q and R of QR. LAPACK computes those of complex and of small
// matrices.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/linalg_qr.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/geqrf.h"
#include "aten/ops/linalg/cpu/householder.h"
#include "aten/ops/linalg/cpu/linalg.h"
#include "aten/ops/linalg_householder_product.h"
#include "aten/ops/ormqr.h"

namespace treadle::cpu {
namespace {

template <class T>
void geqrf_cpu(const Tensor& self, const Tensor& a, const Tensor& tau) {
  const Tensor input = aten::contiguous(self);
  const MatrixBatch b(input);
  const int m = lapack_size(b.rows), n = lapack_size(b.columns);
  const int64_t k = std::min(b.rows, b.columns);
  if (k == 0) return;
  for_each_matrix(b.count, static_cast<double>(b.numel()) * k, [&](int64_t begin, int64_t end) {
    if constexpr (!is_complex_type<T>) {
      if (is_narrow(m, n) || has_blocks(m, k)) {
        for (int64_t i = begin; i < end; ++i)
          factor_rows<T>(
              rows_block<const T>(input.data_as<T>() + i * b.numel(), b.rows, b.columns, b.columns),
              rows_block(a.data_as<T>() + i * b.numel(), b.rows, b.columns, b.columns),
              tau.data_as<T>() + i * k);
        return;
      }
    }
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
    if constexpr (!is_complex_type<T>) {
      if (has_blocks(m, k)) {
        const WorkSpace<T> rows(m * n), tau(k), factors(k * kReflectors);
        const auto factored = rows_block(rows.data(), m, n, n);
        for (int64_t i = begin; i < end; ++i) {
          copy_values(input.data_as<T>() + i * m * n, m * n, rows.data());
          factor_by_blocks(factored, tau.data(), factors.data());
          T* const upper = r.data_as<T>() + i * kept * n;
          parallel_for(kept, rows_of_copy(n), [&](int64_t first, int64_t last) {
            for (int64_t row = first; row < last; ++row) {
              const int64_t below = std::min(row, n);
              std::fill_n(upper + row * n, below, T(0));
              std::copy_n(&factored.at(row, below), n - below, upper + row * n + below);
            }
          });
          if (wants_q)
            first_columns_of_q<T>(factored.part(0, 0, m, k), factors.data(),
                                  rows_block(q.data_as<T>() + i * m * kept, m, kept, kept));
        }
        return;
      }
    }
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
    if constexpr (!is_complex_type<T>) {
      if (has_blocks(m, k)) {
        const WorkSpace<T> products(k * kReflectors);
        for (int64_t i = begin; i < end; ++i) {
          const Block<const T> v =
              rows_block<const T>(vectors.data_as<T>() + i * b.numel(), m, k, n);
          reflector_factors(v, factors.data_as<T>() + i * k, products.data());
          first_columns_of_q<T>(v, products.data(),
                                rows_block(out.data_as<T>() + i * b.numel(), m, n, n));
        }
        return;
      }
    }
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
    if constexpr (!is_complex_type<T>) {
      if (has_blocks(v.rows, k)) {
        const WorkSpace<T> products(k * kReflectors);
        for (int64_t i = begin; i < end; ++i) {
          const Block<const T> reflectors =
              rows_block<const T>(vectors.data_as<T>() + i * v.numel(), v.rows, k, v.columns);
          reflector_factors(reflectors, factors.data_as<T>() + i * k, products.data());
          T* const to = out.data_as<T>() + i * c.numel();
          copy_values(other.data_as<T>() + i * c.numel(), c.numel(), to);
          // C Q is (Q^T C^T)^T.
          const auto result = rows_block(to, c.rows, c.columns, c.columns);
          apply_reflectors<T>(reflectors, products.data(), transpose == left,
                              left ? result : result.transposed());
        }
        return;
      }
    }
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
