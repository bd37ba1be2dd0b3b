// Eigenvalues and singular values, and their vectors.
//
// Matrices with NaN or infinity are refused, because LAPACK's iterations may not end on them.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_linalg_eig.h"
#include "aten/ops/_linalg_eigh.h"
#include "aten/ops/_linalg_svd.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/linalg/cpu/householder.h"
#include "aten/ops/linalg/cpu/linalg.h"
#include "aten/ops/linalg/cpu/tridiagonal.h"
#include "aten/ops/linalg/kernel_errors.h"

namespace treadle::cpu {
namespace {

template <class T>
void require_finite(const char* op, const T* values, const MatrixBatch& b) {
  for (int64_t i = 0; i < b.count; ++i)
    if (!all_finite(values + i * b.numel(), b.numel())) fail_not_finite(op, i);
}

void require_convergence(const char* op, const std::vector<int>& info) {
  for (size_t i = 0; i < info.size(); ++i)
    if (info[i] != 0) fail_not_converged(op, info[i], static_cast<int64_t>(i));
}

template <class T>
void set_identity(const Tensor& t) {
  if (t.numel() == 0) return;
  const MatrixBatch b(t);
  std::fill_n(t.data_as<T>(), t.numel(), T(0));
  for (int64_t i = 0; i < b.count; ++i) {
    for (int64_t j = 0; j < std::min(b.rows, b.columns); ++j)
      t.data_as<T>()[i * b.numel() + j * b.columns + j] = T(1);
  }
}

// Whether no square or quotient of the numbers, which are finite, leaves the range of T. LAPACK
// scales other matrices.
template <class T>
bool is_in_range(const T* values, int64_t count) {
  const T least = std::sqrt(std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon());
  T most(0);
  for (int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(values[i]));
  return most > least && most < T(1) / least;
}

// `a` is stored by columns; its lower triangle is read, and the vectors replace it.
template <class T>
int eigh_by_blocks(const Block<T>& a, bool compute_v, T* values, lapack::Work<T>& work) {
  const int64_t n = a.rows;
  const WorkSpace<T> beside(n), tau(n);
  tridiagonal_by_blocks(a, values, beside.data(), tau.data());
  if (!compute_v)
    return lapack::stedc('N', lapack_size(n), values, beside.data(), a.data, lapack_size(n), work);
  const WorkSpace<T> memory(n * n), factors((n - 1) * kReflectors);
  const auto vectors = rows_block(memory.data(), n, n, n).transposed();
  const int failed =
      lapack::stedc('I', lapack_size(n), values, beside.data(), vectors.data, lapack_size(n), work);
  const Block<const T> reflectors = a.part(1, 0, n - 1, n - 1);
  reflector_factors(reflectors, tau.data(), factors.data());
  apply_reflectors(reflectors, factors.data(), false, vectors.part(1, 0, n - 1, n));
  copy_values(vectors.data, n * n, a.data);
  return failed;
}

template <class T>
void linalg_eigh_cpu(const Tensor& a, std::string_view uplo, bool compute_v, const Tensor& values,
                     const Tensor& vectors) {
  const Tensor input = own_matrices(a);
  const MatrixBatch b(input);
  const int n = lapack_size(b.rows);
  if (n == 0 || b.count == 0) return;
  const char triangle = uplo == "L" || uplo == "l" ? 'L' : 'U';
  require_finite("linalg.eigh", input.data_as<T>(), b);
  std::vector<int> info(b.count);
  for_each_matrix(b.count, 4 * cube(n), [&](int64_t begin, int64_t end) {
    lapack::Work<T> work;
    const WorkSpace<T> columns(b.numel());
    for (int64_t i = begin; i < end; ++i) {
      const T* const from = input.data_as<T>() + i * b.numel();
      if constexpr (!is_complex_type<T>) {
        if (n >= 2 * kLeastBlocked && is_in_range(from, b.numel())) {
          // Rows of the upper triangle are columns of the lower one.
          if (triangle == 'L')
            transpose_copy(from, n, n, n, columns.data(), n);
          else
            copy_values(from, b.numel(), columns.data());
          info[i] = eigh_by_blocks(rows_block(columns.data(), b.rows, b.rows, b.rows).transposed(),
                                   compute_v, values.data_as<T>() + i * n, work);
          if (compute_v)
            transpose_copy(columns.data(), n, n, n, vectors.data_as<T>() + i * b.numel(), n);
          continue;
        }
      }
      transpose_copy(from, n, n, n, columns.data(), n);
      info[i] = lapack::syevd(compute_v ? 'V' : 'N', triangle, n, columns.data(), n,
                              values.data_as<real_type<T>>() + i * n, work);
      if (compute_v)
        transpose_copy(columns.data(), n, n, n, vectors.data_as<T>() + i * b.numel(), n);
    }
  });
  require_convergence("linalg.eigh", info);
}

// LAPACK gives the vectors of real matrices as columns of real numbers: a pair of conjugate values
// has its vectors' real parts in the first column and the imaginary ones in the second.
template <class R>
void unpack_vectors(const std::complex<R>* values, const R* columns, int64_t n,
                    std::complex<R>* out) {
  for (int64_t j = 0; j < n; ++j) {
    const R* real = columns + j * n;
    if (values[j].imag() == 0 || j + 1 == n) {
      for (int64_t i = 0; i < n; ++i) out[i * n + j] = real[i];
      continue;
    }
    const R* imaginary = real + n;
    for (int64_t i = 0; i < n; ++i) {
      out[i * n + j] = {real[i], imaginary[i]};
      out[i * n + j + 1] = {real[i], -imaginary[i]};
    }
    ++j;
  }
}

template <class T>
void linalg_eig_cpu(const Tensor& a, bool compute_v, const Tensor& values, const Tensor& vectors) {
  using C = std::complex<real_type<T>>;
  const Tensor input = own_matrices(a);
  const MatrixBatch b(input);
  const int n = lapack_size(b.rows);
  if (n == 0 || b.count == 0) return;
  require_finite("linalg.eig", input.data_as<T>(), b);
  std::vector<int> info(b.count);
  for_each_matrix(b.count, 20 * cube(n), [&](int64_t begin, int64_t end) {
    lapack::Work<T> work;
    const WorkSpace<T> columns(b.numel()), right(compute_v ? b.numel() : 0);
    for (int64_t i = begin; i < end; ++i) {
      transpose_copy(input.data_as<T>() + i * b.numel(), n, n, n, columns.data(), n);
      C* const w = values.data_as<C>() + i * n;
      info[i] = lapack::geev(n, columns.data(), n, w, compute_v ? right.data() : nullptr, n, work);
      if (!compute_v) continue;
      C* const to = vectors.data_as<C>() + i * b.numel();
      if constexpr (is_complex_type<T>)
        transpose_copy(right.data(), n, n, n, to, n);
      else
        unpack_vectors(w, right.data(), n, to);
    }
  });
  require_convergence("linalg.eig", info);
}

// `a`, stored by columns, has at least as many rows. The columns of `u` may be more than those of
// `a`, and `vt` is square. As LAPACK's gesdd, with the reflectors applied by blocks.
template <class T>
int svd_by_blocks(const Block<T>& a, T* values, const Block<T>& u, const Block<T>& vt,
                  lapack::Work<T>& work) {
  const int64_t m = a.rows, n = a.columns;
  const int size = lapack_size(n);
  const WorkSpace<T> beside(n), tau_u(n), tau_v(n), factors(n * kReflectors), inner_u(n * n),
      inner_vt(n * n);
  lapack::gebrd(lapack_size(m), size, a.data, lapack_size(m), values, beside.data(), tau_u.data(),
                tau_v.data(), work);
  const int failed =
      lapack::bdsdc(size, values, beside.data(), inner_u.data(), size, inner_vt.data(), size, work);
  const auto place = [&](const WorkSpace<T>& columns, const Block<T>& to) {
    const Block<T> memory = to.by_rows() ? to : to.transposed();
    for (int64_t i = 0; i < memory.rows; ++i) std::fill_n(&memory.at(i, 0), memory.columns, T(0));
    if (to.by_rows()) return transpose_copy(columns.data(), n, n, n, to.data, to.row_stride);
    for (int64_t j = 0; j < n; ++j) std::copy_n(&columns[j * n], n, &to.at(0, j));
  };
  place(inner_u, u);
  for (int64_t j = n; j < u.columns; ++j) u.at(j, j) = T(1);
  place(inner_vt, vt);

  const Block<const T> left = a, right = a.part(0, 1, n - 1, n - 1).transposed();
  reflector_factors(left, tau_u.data(), factors.data());
  apply_reflectors(left, factors.data(), false, u);
  reflector_factors(right, tau_v.data(), factors.data());
  apply_reflectors(right, factors.data(), false, vt.part(0, 1, n, n - 1).transposed());
  return failed;
}

template <class T>
void linalg_svd_cpu(const Tensor& a, bool full_matrices, bool compute_uv, const Tensor& u,
                    const Tensor& s, const Tensor& vh) {
  const Tensor input = own_matrices(a);
  const MatrixBatch b(input);
  const int64_t m = b.rows, n = b.columns, k = std::min(m, n);
  if (k == 0 || b.count == 0) {
    if (compute_uv) {
      set_identity<T>(u);
      set_identity<T>(vh);
    }
    return;
  }
  require_finite("linalg.svd", input.data_as<T>(), b);
  const int64_t width = full_matrices ? m : k, height = full_matrices ? n : k;
  const int rows = lapack_size(m), columns = lapack_size(n);
  const char job = !compute_uv ? 'N' : full_matrices ? 'A' : 'S';
  std::vector<int> info(b.count);
  for_each_matrix(b.count, 8.0 * m * n * k, [&](int64_t begin, int64_t end) {
    lapack::Work<T> work;
    const WorkSpace<T> matrix(m * n), left(compute_uv ? m * width : 1),
        right(compute_uv ? height * n : 1);
    for (int64_t i = begin; i < end; ++i) {
      const T* const from = input.data_as<T>() + i * m * n;
      if constexpr (!is_complex_type<T>) {
        // LAPACK begins with QR where one side is much longer.
        if (compute_uv && k >= 2 * kLeastBlocked && std::max(m, n) < k + k / 2 &&
            is_in_range(from, m * n)) {
          T* const scales = s.data_as<T>() + i * k;
          const auto u_rows = rows_block(u.data_as<T>() + i * m * width, m, width, width),
                     vh_rows = rows_block(vh.data_as<T>() + i * height * n, height, n, n);
          if (m >= n) {
            transpose_copy(from, m, n, n, matrix.data(), m);
            const auto a_columns = rows_block(matrix.data(), n, m, m).transposed();
            info[i] = svd_by_blocks(a_columns, scales, u_rows, vh_rows, work);
          } else {  // rows are the columns of the transposed matrix
            copy_values(from, m * n, matrix.data());
            const auto a_columns = rows_block(matrix.data(), m, n, n).transposed();
            info[i] =
                svd_by_blocks(a_columns, scales, vh_rows.transposed(), u_rows.transposed(), work);
          }
          continue;
        }
      }
      transpose_copy(from, m, n, n, matrix.data(), m);
      info[i] =
          lapack::gesdd(job, rows, columns, matrix.data(), rows, s.data_as<real_type<T>>() + i * k,
                        left.data(), rows, right.data(), lapack_size(height), work);
      if (!compute_uv) continue;
      transpose_copy(left.data(), width, m, m, u.data_as<T>() + i * m * width, width);
      transpose_copy(right.data(), n, height, height, vh.data_as<T>() + i * height * n, n);
    }
  });
  require_convergence("linalg.svd", info);
}

const auto eigh_registered = register_kernels<aten::ops::_linalg_eigh, DeviceType::CPU>(
    []<class T>() { return &linalg_eigh_cpu<T>; }, "linalg_eigh_cpu");
const auto eig_registered = register_kernels<aten::ops::_linalg_eig, DeviceType::CPU>(
    []<class T>() { return &linalg_eig_cpu<T>; }, "linalg_eig_cpu");
const auto svd_registered = register_kernels<aten::ops::_linalg_svd, DeviceType::CPU>(
    []<class T>() { return &linalg_svd_cpu<T>; }, "linalg_svd_cpu");

}  // namespace
}  // namespace treadle::cpu
