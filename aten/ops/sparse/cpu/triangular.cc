// Systems of equations with a triangular compressed matrix. A column of right sides is computed by
// one thread, row after row, so the bits do not depend on the number of threads.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>
#include <vector>

#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/_csr_triangular_solve.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/indexing/cpu/row_sums.h"
#include "aten/ops/sparse/cpu/compressed_rows.h"

namespace treadle::cpu {
namespace {

template <class T>
struct System {
  const CompressedRows::Copy<>& matrix;
  const T* values;
  int64_t rows, width;  // of the right sides
  bool upper, unitriangular;
};

// The entries of row r that are not on the diagonal and are read, and the number on the diagonal.
// The columns of a row are in order.
template <class T>
struct Row {
  int64_t begin, end;
  T diagonal;
};

template <class T>
Row<T> row_of(const System<T>& of, int64_t r) {
  const int64_t* const columns = of.matrix.columns.data();
  const int64_t begin = of.matrix.offsets[r], end = of.matrix.offsets[r + 1];
  const int64_t at = std::lower_bound(columns + begin, columns + end, r) - columns;
  const bool has_diagonal = at < end && columns[at] == r;
  const T diagonal = has_diagonal ? of.values[at] : T(0);
  return of.upper ? Row<T>{at + (has_diagonal ? 1 : 0), end, diagonal}
                  : Row<T>{begin, at, diagonal};
}

// One column: the terms of a row go to sums in turn, which do not wait for each other.
template <class T>
void solve_one(const System<T>& of, const T* b, T* x) {
  using S = wide_type<compute_type<T>>;
  constexpr int64_t kSums = 4;
  const int64_t* const columns = of.matrix.columns.data();
  for (int64_t step = 0; step < of.rows; ++step) {
    const int64_t r = of.upper ? of.rows - 1 - step : step;
    const Row<T> row = row_of(of, r);
    S sums[kSums] = {};
    const auto term = [&](int64_t i) {
      return static_cast<S>(of.values[i]) * static_cast<S>(x[columns[i]]);
    };
    int64_t i = row.begin;
    for (; i + kSums <= row.end; i += kSums) {
      for (int64_t k = 0; k < kSums; ++k) sums[k] += term(i + k);
    }
    for (; i < row.end; ++i) sums[0] += term(i);
    const S left = static_cast<S>(b[r]) - ((sums[0] + sums[1]) + (sums[2] + sums[3]));
    x[r] = static_cast<T>(of.unitriangular ? left : left / static_cast<S>(row.diagonal));
  }
}

// A few columns of right sides: each has a sum of its own.
template <class T>
void solve_few(const System<T>& of, const T* b, int64_t first, int64_t last, T* x) {
  using S = wide_type<compute_type<T>>;
  std::vector<S> sums(static_cast<size_t>(last - first));
  for (int64_t step = 0; step < of.rows; ++step) {
    const int64_t r = of.upper ? of.rows - 1 - step : step;
    const Row<T> row = row_of(of, r);
    for (int64_t j = first; j < last; ++j) sums[j - first] = static_cast<S>(b[r * of.width + j]);
    for (int64_t i = row.begin; i < row.end; ++i) {
      const S factor = static_cast<S>(of.values[i]);
      const T* const known = x + of.matrix.columns[i] * of.width;
      for (int64_t j = first; j < last; ++j) sums[j - first] -= factor * static_cast<S>(known[j]);
    }
    for (int64_t j = first; j < last; ++j) {
      const S sum = sums[j - first];
      x[r * of.width + j] =
          static_cast<T>(of.unitriangular ? sum : sum / static_cast<S>(row.diagonal));
    }
  }
}

// Many columns: the rows of X that are known are added up by vectors, in runs, as in products.
template <class T>
void solve_many(const System<T>& of, const T* b, int64_t first, int64_t last, T* x) {
  static const simd::SumRows<T> sum_rows = simd::sum_rows<T>();
  const int64_t count = last - first;
  const simd::RowTable<T> known{x + first, of.rows, of.width, count};
  std::vector<T> sums(static_cast<size_t>(count));
  std::vector<double> total;
  for (int64_t step = 0; step < of.rows; ++step) {
    const int64_t r = of.upper ? of.rows - 1 - step : step;
    const Row<T> row = row_of(of, r);
    const int64_t* const columns = of.matrix.columns.data() + row.begin;
    const T* const factors = of.values + row.begin;
    const int64_t n = row.end - row.begin;
    if (n <= kSumRun) {
      sum_rows(known, columns, factors, n, n, sums.data(), nullptr);
    } else {
      total.assign(static_cast<size_t>(count), 0);
      for (int64_t k = 0; k < n; k += kSumRun)
        sum_rows(known, columns + k, factors + k, std::min(kSumRun, n - k), n - k, nullptr,
                 total.data());
      std::transform(total.begin(), total.end(), sums.begin(),
                     [](double sum) { return static_cast<T>(sum); });
    }
    for (int64_t j = 0; j < count; ++j) {
      const int64_t at = r * of.width + first + j;
      x[at] = of.unitriangular ? b[at] - sums[j] : (b[at] - sums[j]) / row.diagonal;
    }
  }
}

// The columns of X from `first` up to `last`. Entries on the other side of the diagonal are not
// read, nor is a diagonal of ones.
template <class T>
void solve_columns(const System<T>& of, const T* b, int64_t first, int64_t last, T* x) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (of.width >= 4) return solve_many(of, b, first, last, x);
  }
  if (of.width == 1) return solve_one(of, b, x);
  solve_few(of, b, first, last, x);
}

template <class T>
void csr_triangular_solve_cpu(const Tensor& values, const Tensor& crow, const Tensor& col,
                              const Tensor& other, bool upper, bool unitriangular,
                              const Tensor& out) {
  const Tensor factors = aten::contiguous(values), b = aten::contiguous(other);
  const Tensor offsets = aten::contiguous(crow), columns = aten::contiguous(col);
  const int64_t rows = out.size(0), width = out.size(1);
  const CompressedRows matrix("triangular_solve", offsets, columns, rows);
  const CompressedRows::Copy<> all = matrix.copy(rows);
  const System<T> system{all, factors.data_as<T>(), rows, width, upper, unitriangular};
  // A piece has so many columns that the vectors of a row are full.
  constexpr int64_t kPiece = 32;
  const int64_t pieces = (width + kPiece - 1) / kPiece;
  parallel_for(pieces, grain_for((rows + columns.numel()) * kPiece),
               [&](int64_t first, int64_t last) {
                 solve_columns(system, b.data_as<T>(), first * kPiece,
                               std::min(width, last * kPiece), out.data_as<T>());
               });
}

const auto registered = register_kernels<aten::ops::_csr_triangular_solve, DeviceType::CPU>(
    []<class T>() { return &csr_triangular_solve_cpu<T>; }, "csr_triangular_solve_cpu");

}  // namespace
}  // namespace treadle::cpu
