// linalg_lstsq: the X with the least |A X - B|, and among those the X with the least |X|.
//
// The results depend on the driver and on the rank that it finds. gels assumes full rank, gelsy
// finds the rank by QR with column pivots, gelsd and gelss by singular values. A tall matrix is
// brought to its R first.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_linalg_lstsq.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"
#include "aten/ops/linalg/cpu/householder.h"
#include "aten/ops/linalg/cpu/linalg.h"
#include "aten/ops/linalg/kernel_errors.h"
#include "aten/ops/linalg/shape.h"

namespace treadle::cpu {
namespace {

// Whether R is much smaller than its matrix of m rows.
template <class T>
constexpr bool is_tall(int64_t m, int64_t columns) {
  return !is_complex_type<T> && m >= 2 * columns &&
         (is_narrow(m, columns) || has_blocks(m, columns));
}

// The R of [A B], which has the least squares and the distances of A X - B: Q keeps lengths.
template <class T>
Block<T> triangle_of(const T* a, const T* b, int64_t m, int64_t n, int64_t k, T* memory) {
  const int64_t width = n + k;
  const auto both = rows_block(memory, m, width, width);
  parallel_for(m, rows_of_copy(width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(a + i * n, n, &both.at(i, 0));
      std::copy_n(b + i * k, k, &both.at(i, n));
    }
  });
  const WorkSpace<T> tau(width);
  factor_rows<T>(both, both, tau.data());
  for (int64_t i = 1; i < width; ++i) std::fill_n(&both.at(i, 0), i, T(0));
  return both.part(0, 0, width, width);
}

template <class T>
std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq_cpu(const Tensor& a, const Tensor& b,
                                                            double rcond, std::string_view driver) {
  using R = real_type<T>;
  const DimVector batch = shape::broadcast_batches("linalg_lstsq", a, b);
  const auto spread = [&](const Tensor& t) {
    DimVector sizes(batch);
    sizes.push_back(t.size(-2));
    sizes.push_back(t.size(-1));
    return own_matrices(aten::expand(t, sizes));
  };
  const auto made = [&](std::initializer_list<int64_t> rest, ScalarType dtype) {
    DimVector sizes(batch);
    for (const int64_t n : rest) sizes.push_back(n);
    return empty_cpu(sizes, dtype);
  };
  const Tensor matrices = spread(a), sides = spread(b);
  const MatrixBatch shape(matrices);
  const int64_t m = shape.rows, n = shape.columns, k = sides.size(-1), least = std::min(m, n);
  const bool has_values = driver == "gelsd" || driver == "gelss", has_rank = driver != "gels";
  const Tensor solution = made({n, k}, a.dtype());
  const Tensor none = empty_cpu({0}, to_real(a.dtype()));
  const Tensor values = has_values ? made({least}, to_real(a.dtype())) : none;
  const Tensor rank = has_rank ? made({}, ScalarType::Int64) : empty_cpu({0}, ScalarType::Int64);
  // The distances are known where every matrix has full rank and more rows than columns.
  Tensor residuals = m > n && driver != "gelsy" ? made({k}, to_real(a.dtype())) : none;

  const int64_t count = shape.count;
  for (int64_t i = 0; i < count; ++i) {
    if (!all_finite(matrices.data_as<T>() + i * m * n, m * n) ||
        !all_finite(sides.data_as<T>() + i * m * k, m * k))
      fail_sides_not_finite(i);
  }
  std::vector<int> info(count), ranks(count, lapack_size(least));
  if (least == 0 || k == 0) {
    std::fill_n(solution.data_as<T>(), solution.numel(), T(0));
    if (has_values) std::fill_n(values.data_as<R>(), values.numel(), R(0));
  }
  const bool tall = is_tall<T>(m, n + k);
  const int64_t height = tall ? n + k : m, longest = std::max(height, n);
  const int rows = lapack_size(height), columns = lapack_size(n), right = lapack_size(k),
            lead = leading(longest);
  if (least > 0 && k > 0) {
    for_each_matrix(count, 4.0 * m * n * (least + k), [&](int64_t begin, int64_t end) {
      lapack::Work<T> work;
      const WorkSpace<T> matrix(height * n), side(longest * k), both(tall ? m * (n + k) : 0);
      std::vector<R> singular(least);
      std::vector<int> order(n);
      for (int64_t i = begin; i < end; ++i) {
        const T *a_rows = matrices.data_as<T>() + i * m * n,
                *b_rows = sides.data_as<T>() + i * m * k;
        int64_t a_pitch = n, b_pitch = k;
        if constexpr (!is_complex_type<T>) {
          if (tall) {
            const Block<T> r = triangle_of(a_rows, b_rows, m, n, k, both.data());
            a_rows = r.data;
            b_rows = r.data + n;
            a_pitch = b_pitch = n + k;
          }
        }
        transpose_copy(a_rows, height, n, a_pitch, matrix.data(), height);
        std::fill_n(side.data(), longest * k, T(0));
        transpose_copy(b_rows, height, k, b_pitch, side.data(), longest);
        std::fill(order.begin(), order.end(), 0);
        const R cut = static_cast<R>(rcond);
        if (driver == "gels")
          info[i] =
              lapack::gels(rows, columns, right, matrix.data(), rows, side.data(), lead, work);
        else if (driver == "gelsy")
          info[i] = lapack::gelsy(rows, columns, right, matrix.data(), rows, side.data(), lead,
                                  order.data(), cut, &ranks[i], work);
        else if (driver == "gelsd")
          info[i] = lapack::gelsd(rows, columns, right, matrix.data(), rows, side.data(), lead,
                                  singular.data(), cut, &ranks[i], work);
        else
          info[i] = lapack::gelss(rows, columns, right, matrix.data(), rows, side.data(), lead,
                                  singular.data(), cut, &ranks[i], work);
        transpose_copy(side.data(), k, n, longest, solution.data_as<T>() + i * n * k, k);
        if (has_values) std::copy_n(singular.data(), least, values.data_as<R>() + i * least);
        if (residuals.numel() == 0) continue;
        for (int64_t c = 0; c < k; ++c) {
          R sum(0);
          for (int64_t r = n; r < height; ++r) sum += std::norm(side[c * longest + r]);
          residuals.data_as<R>()[i * k + c] = sum;
        }
      }
    });
  } else if (residuals.numel() > 0) {  // no columns: all of B is left over
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t c = 0; c < k; ++c) {
        R sum(0);
        for (int64_t r = 0; r < m; ++r) sum += std::norm(sides.data_as<T>()[(i * m + r) * k + c]);
        residuals.data_as<R>()[i * k + c] = sum;
      }
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    if (info[i] != 0) fail_rank(i);
    if (has_rank) rank.data_as<int64_t>()[i] = ranks[i];
    if (ranks[i] < least) residuals = none;
  }
  return {solution, residuals, rank, values};
}

const auto lstsq_registered = register_kernels<aten::ops::_linalg_lstsq, DeviceType::CPU>(
    []<class T>() { return &linalg_lstsq_cpu<T>; }, "linalg_lstsq_cpu");

}  // namespace
}  // namespace treadle::cpu
