// Factors of matrices: LU, Cholesky and LDL.
//
// A matrix with NaN or infinity has factors of NaN, because LAPACK's choice of pivots does not
// handle them.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_linalg_cholesky.h"
#include "aten/ops/_linalg_ldl.h"
#include "aten/ops/_linalg_lu.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/linalg/cpu/cholesky.h"
#include "aten/ops/linalg/cpu/ldl.h"
#include "aten/ops/linalg/cpu/linalg.h"
#include "aten/ops/linalg/cpu/lu.h"

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
      if constexpr (!is_complex_type<T>) {
        if (k >= kLeastBlocked) {
          copy_values(from, b.numel(), to);
          failed = lu_by_blocks(rows_block(to, b.rows, b.columns, b.columns), pivot);
          continue;
        }
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
      copy_triangle(from, n, upper, to);
      if (!all_finite(to, b.numel())) {
        failed = 1;
        std::fill_n(to, b.numel(), quiet_nan<T>());
        continue;
      }
      if constexpr (!is_complex_type<T>) {
        if (n >= kLeastBlocked) {
          const auto rows = rows_block(to, n, n, n);
          failed = cholesky_by_blocks(upper ? rows.transposed() : rows);
          copy_triangle(to, n, upper, to);
          continue;
        }
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
      copy_triangle(from, n, false, to);
      transpose_copy(to, n, n, n, columns.data(), n);
      if (!all_finite(columns.data(), b.numel())) {
        std::fill_n(to, b.numel(), quiet_nan<T>());
        for (int j = 0; j < n; ++j) pivot[j] = j + 1;
        continue;
      }
      if constexpr (!is_complex_type<T>) {
        if (n >= 2 * kLeastBlocked) {
          failed = ldl_by_blocks(rows_block(columns.data(), n, n, n).transposed(), pivot);
          transpose_copy(columns.data(), n, n, n, to, n);
          copy_triangle(to, n, false, to);
          continue;
        }
      }
      failed = lapack::sytrf(hermitian, 'L', n, columns.data(), n, pivot, work);
      transpose_copy(columns.data(), n, n, n, to, n);
    }
  });
}

const auto lu_registered = register_kernels<aten::ops::_linalg_lu, DeviceType::CPU>(
    []<class T>() { return &linalg_lu_cpu<T>; }, "linalg_lu_cpu");
const auto cholesky_registered = register_kernels<aten::ops::_linalg_cholesky, DeviceType::CPU>(
    []<class T>() { return &linalg_cholesky_cpu<T>; }, "linalg_cholesky_cpu");
const auto ldl_registered = register_kernels<aten::ops::_linalg_ldl, DeviceType::CPU>(
    []<class T>() { return &linalg_ldl_cpu<T>; }, "linalg_ldl_cpu");

}  // namespace
}  // namespace treadle::cpu
