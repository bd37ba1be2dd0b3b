// Solutions of linear systems with any square matrix, a triangular one, or LDL factors; and the
// permutation of LU's pivots.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_linalg_solve.h"
#include "aten/ops/_lu_permutation.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/linalg/cpu/linalg.h"
#include "aten/ops/linalg/cpu/lu.h"
#include "aten/ops/linalg/kernel_errors.h"
#include "aten/ops/linalg/shape.h"
#include "aten/ops/linalg_ldl_solve.h"
#include "aten/ops/linalg_solve_triangular.h"

namespace treadle::cpu {
namespace {

// The matrix of an operand for each matrix of a result, where batches broadcast.
class BatchMap {
 public:
  BatchMap(IntList result, IntList operand)
      : result_(result), steps_(broadcast_strides(result, operand, contiguous_strides(operand))) {}
  int64_t operator()(int64_t i) const { return offset_at(result_, steps_, i); }

 private:
  DimVector result_, steps_;
};

IntList batch_of(const Tensor& t, size_t last) {
  return t.sizes().slice(0, t.sizes().size() - last);
}

// b becomes the x with A x = b, or x A = b, where P A = L U.
template <class T>
void solve_factored(Block<const T> lu, const int* pivots, bool left, const Block<T>& b) {
  if (left) {
    exchange_rows(b, pivots, lu.rows);
    solve_triangle<T>(lu, false, true, b);
    solve_triangle<T>(lu, true, false, b);
    return;
  }
  solve_triangle<T>(lu.transposed(), false, false, b.transposed());
  solve_triangle<T>(lu.transposed(), true, true, b.transposed());
  parallel_for(b.rows, rows_of_copy(b.columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = lu.rows - 1; j >= 0; --j) std::swap(b.at(i, j), b.at(i, pivots[j] - 1));
    }
  });
}

template <class T>
void linalg_solve_cpu(const Tensor& a, const Tensor& b, bool left, const Tensor& out,
                      const Tensor& info) {
  const Tensor matrices = own_matrices(a), sides = aten::contiguous(b);
  const bool vector = shape::is_vector_rhs(a, b);
  const MatrixBatch batch(matrices);
  const int64_t n = batch.rows, k = vector ? 1 : b.size(left ? -1 : -2);
  const int size = lapack_size(n), count = lapack_size(k), lead = leading(n);
  if (n == 0) {
    std::fill_n(info.data_as<int>(), info.numel(), 0);
    return;
  }
  const bool by_blocks = n >= kLeastBlocked;  // real numbers
  const WorkSpace<T> factors(matrices.numel());
  std::vector<int> pivots(batch.count * n);
  for_each_matrix(batch.count, cube(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = matrices.data_as<T>() + i * n * n;
      T* to = factors.data() + i * n * n;
      int& failed = info.data_as<int>()[i];
      failed = 0;
      if (!all_finite(from, n * n)) continue;
      if constexpr (!is_complex_type<T>) {
        if (by_blocks) {
          copy_values(from, n * n, to);
          failed = lu_by_blocks(rows_block(to, n, n, n), &pivots[i * n]);
          continue;
        }
      }
      // X A = B is A^T X^T = B^T, and a row-major matrix read by columns is transposed.
      if (left)
        transpose_copy(from, n, n, n, to, n);
      else
        std::copy_n(from, n * n, to);
      failed = lapack::getrf(size, size, to, lead, &pivots[i * n]);
    }
  });
  if (out.numel() == 0) return;
  const size_t last = vector ? 1 : 2;
  const BatchMap of_a(batch_of(out, last), batch_of(a, 2)),
      of_b(batch_of(out, last), batch_of(b, last));
  for_each_matrix(
      out.numel() / (n * k), static_cast<double>(n) * n * k, [&](int64_t begin, int64_t end) {
        const WorkSpace<T> columns(n * k);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t at = of_a(i);
          const T* from = sides.data_as<T>() + of_b(i) * n * k;
          T* const to = out.data_as<T>() + i * n * k;
          if (info.data_as<int>()[at] != 0 ||
              !all_finite(matrices.data_as<T>() + at * n * n, n * n)) {
            std::fill_n(to, n * k, quiet_nan<T>());
            continue;
          }
          const T* const lu = factors.data() + at * n * n;
          const int* const pivot = &pivots[at * n];
          if constexpr (!is_complex_type<T>) {
            if (by_blocks) {
              copy_values(from, n * k, to);
              const auto result = left ? rows_block(to, n, k, k) : rows_block(to, k, n, n);
              solve_factored<T>(rows_block<const T>(lu, n, n, n), pivot, left, result);
              continue;
            }
          }
          if (!left || k == 1) {  // B is as LAPACK reads it
            std::copy_n(from, n * k, to);
            lapack::getrs('N', size, count, lu, lead, pivot, to, lead);
          } else {
            transpose_copy(from, n, k, k, columns.data(), n);
            lapack::getrs('N', size, count, lu, lead, pivot, columns.data(), lead);
            transpose_copy(columns.data(), k, n, n, to, k);
          }
        }
      });
}

template <class T>
void solve_triangular_cpu(const Tensor& a, const Tensor& b, bool upper, bool left,
                          bool unitriangular, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor matrices = aten::contiguous(a), sides = aten::contiguous(b);
  const int64_t n = a.size(-1), rows = b.size(-2), columns = b.size(-1);
  const BatchMap of_a(batch_of(out, 2), batch_of(a, 2)), of_b(batch_of(out, 2), batch_of(b, 2));
  const double cost = static_cast<double>(n) * rows * columns / 2;
  for_each_matrix(out.numel() / (rows * columns), cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* const to = out.data_as<T>() + i * rows * columns;
      copy_values(sides.data_as<T>() + of_b(i) * rows * columns, rows * columns, to);
      if constexpr (!is_complex_type<T>) {
        if (n >= kLeastBlocked) {
          const auto triangle =
              rows_block<const T>(matrices.data_as<T>() + of_a(i) * n * n, n, n, n);
          const auto result = rows_block(to, rows, columns, columns);
          if (left)
            solve_triangle<T>(triangle, upper, unitriangular, result);
          else
            solve_triangle<T>(triangle.transposed(), !upper, unitriangular, result.transposed());
          continue;
        }
      }
      lapack::trsm_rows(left, upper, false, unitriangular, lapack_size(rows), lapack_size(columns),
                        matrices.data_as<T>() + of_a(i) * n * n, lapack_size(n), to,
                        lapack_size(columns));
    }
  });
}

template <class T>
void ldl_solve_cpu(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian,
                   const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor matrices = aten::contiguous(ld), given = aten::contiguous(pivots),
               sides = aten::contiguous(b);
  // A copy, so that the checked values are those used.
  const std::vector<int> rows(given.data_as<int>(), given.data_as<int>() + given.numel());
  const int64_t n = ld.size(-1), k = b.size(-1);
  const int size = lapack_size(n), lead = leading(n);
  for (int64_t i = 0; i < given.numel() / n; ++i)
    if (!sound_pivots(rows.data() + i * n, n)) fail_pivots(i);
  const BatchMap of_a(batch_of(out, 2), batch_of(ld, 2)), of_b(batch_of(out, 2), batch_of(b, 2));
  for_each_matrix(
      out.numel() / (n * k), static_cast<double>(n) * n * (n + k), [&](int64_t begin, int64_t end) {
        const WorkSpace<T> factor(n * n), columns(n * k);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t at = of_a(i);
          transpose_copy(matrices.data_as<T>() + at * n * n, n, n, n, factor.data(), n);
          transpose_copy(sides.data_as<T>() + of_b(i) * n * k, n, k, k, columns.data(), n);
          lapack::sytrs(hermitian, 'L', size, lapack_size(k), factor.data(), lead,
                        rows.data() + at * n, columns.data(), lead);
          transpose_copy(columns.data(), k, n, n, out.data_as<T>() + i * n * k, k);
        }
      });
}

template <class T>
void lu_permutation_cpu(const Tensor& pivots, int64_t rows, const Tensor& out) {
  const Tensor given = aten::contiguous(pivots);
  const int64_t k = pivots.size(-1);
  // A copy, so that the checked values are those used.
  const std::vector<T> from(given.data_as<T>(), given.data_as<T>() + given.numel());
  int64_t* to = out.data_as<int64_t>();
  for (const T pivot : from) {
    check<ErrorKind::Value>(pivot >= 1 && pivot <= rows, OpName("lu_unpack"),
                            "expected pivots in [1, ", rows, "], got ", pivot);
  }
  if (rows == 0) return;
  parallel_for(out.numel() / rows, std::max<int64_t>(1, 32768 / rows),
               [&](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) {
                   int64_t* order = to + b * rows;
                   for (int64_t i = 0; i < rows; ++i) order[i] = i;
                   for (int64_t i = 0; i < k; ++i) std::swap(order[i], order[from[b * k + i] - 1]);
                 }
               });
}

const auto solve_registered = register_kernels<aten::ops::_linalg_solve, DeviceType::CPU>(
    []<class T>() { return &linalg_solve_cpu<T>; }, "linalg_solve_cpu");
const auto triangular_registered =
    register_kernels<aten::ops::linalg_solve_triangular, DeviceType::CPU>(
        []<class T>() { return &solve_triangular_cpu<T>; }, "solve_triangular_cpu");
const auto ldl_solve_registered = register_kernels<aten::ops::linalg_ldl_solve, DeviceType::CPU>(
    []<class T>() { return &ldl_solve_cpu<T>; }, "ldl_solve_cpu");
const auto permutation_registered = register_kernels<aten::ops::_lu_permutation, DeviceType::CPU>(
    []<class T>() { return &lu_permutation_cpu<T>; }, "lu_permutation_cpu");

}  // namespace
}  // namespace treadle::cpu
