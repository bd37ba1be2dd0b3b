// linalg_lstsq: the X with the least |A X - B|, and among those the X with the least |X|.
//
// The results depend on the driver and on the rank that it finds. gels assumes full rank, gelsy
// finds the rank by QR with column pivots, gelsd and gelss by singular values.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_linalg_lstsq.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"
#include "aten/ops/linalg/cpu/linalg.h"
#include "aten/ops/linalg/kernel_errors.h"
#include "aten/ops/linalg/shape.h"

namespace treadle::cpu {
namespace {

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
  const int64_t m = shape.rows, n = shape.columns, k = sides.size(-1), least = std::min(m, n),
                most = std::max(m, n);
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
  const int rows = lapack_size(m), columns = lapack_size(n), right = lapack_size(k),
            tall = leading(most);
  if (least > 0 && k > 0) {
    for_each_matrix(count, 4.0 * m * n * (least + k), [&](int64_t begin, int64_t end) {
      lapack::Work<T> work;
      const WorkSpace<T> matrix(m * n), side(most * k);
      std::vector<R> singular(least);
      std::vector<int> order(n);
      for (int64_t i = begin; i < end; ++i) {
        transpose_copy(matrices.data_as<T>() + i * m * n, m, n, n, matrix.data(), m);
        std::fill_n(side.data(), most * k, T(0));
        transpose_copy(sides.data_as<T>() + i * m * k, m, k, k, side.data(), most);
        std::fill(order.begin(), order.end(), 0);
        const R cut = static_cast<R>(rcond);
        if (driver == "gels")
          info[i] =
              lapack::gels(rows, columns, right, matrix.data(), rows, side.data(), tall, work);
        else if (driver == "gelsy")
          info[i] = lapack::gelsy(rows, columns, right, matrix.data(), rows, side.data(), tall,
                                  order.data(), cut, &ranks[i], work);
        else if (driver == "gelsd")
          info[i] = lapack::gelsd(rows, columns, right, matrix.data(), rows, side.data(), tall,
                                  singular.data(), cut, &ranks[i], work);
        else
          info[i] = lapack::gelss(rows, columns, right, matrix.data(), rows, side.data(), tall,
                                  singular.data(), cut, &ranks[i], work);
        transpose_copy(side.data(), k, n, most, solution.data_as<T>() + i * n * k, k);
        if (has_values) std::copy_n(singular.data(), least, values.data_as<R>() + i * least);
        if (residuals.numel() == 0) continue;
        for (int64_t c = 0; c < k; ++c) {
          R sum(0);
          for (int64_t r = n; r < m; ++r) sum += std::norm(side[c * most + r]);
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
