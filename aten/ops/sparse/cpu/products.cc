// Products with a compressed sparse matrix: by a strided matrix, and the sampled product of two
// strided ones. A row of the result is computed by one thread, in the order of the entries, so the
// bits do not depend on the number of threads.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/long_sums.h"
#include "aten/backend/cpu/wrapping.h"
#include "aten/ops/_csr_mm.h"
#include "aten/ops/_csr_sampled_mm.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/indexing/cpu/row_sums.h"
#include "aten/ops/sparse/cpu/compressed_rows.h"
#include "aten/ops/sparse/cpu/row_products.h"

namespace treadle::cpu {
namespace {

template <class T>
compute_type<T> number(const T& x) {
  return static_cast<compute_type<T>>(x);
}

// Sums are kept in a wider type after so many terms.
constexpr int64_t kRun = 4 * kSumRun;

// The sum of term(0), ..., term(n - 1). So many are computed side by side.
template <class S, int64_t kSums, class F>
S sum_of_terms(int64_t n, F&& term) {
  const auto run = [&](int64_t i, int64_t end) {
    S sums[kSums] = {};
    for (; i + kSums <= end; i += kSums) {
      for (int64_t k = 0; k < kSums; ++k) sums[k] = sum_of(sums[k], term(i + k));
    }
    for (; i < end; ++i) sums[0] = sum_of(sums[0], term(i));
    S sum = sums[0];
    for (int64_t k = 1; k < kSums; ++k) sum = sum_of(sum, sums[k]);
    return sum;
  };
  if (n <= kRun) return run(0, n);
  wide_type<S> total{};
  for (int64_t i = 0; i < n; i += kRun)
    total = sum_of(total, static_cast<wide_type<S>>(run(i, std::min(n, i + kRun))));
  return static_cast<S>(total);
}

// ---- by a vector ----

template <class T>
void csr_mv(const CompressedRows& matrix, const Tensor& offsets, const Tensor& columns,
            const T* factors, const Tensor& vector, const Tensor& out) {
  const int64_t* const column = columns.data_as<int64_t>();
  const T* const x = vector.data_as<T>();
  T* const to = out.data_as<T>();
  const int64_t width = vector.numel();
  // The elements of the vector are picked one by one.
  matrix.each_piece(out.numel(), 8, [&](int64_t first, int64_t last) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      static const simd::SumRowProducts<T> sum_row_products = simd::sum_row_products<T>();
      const simd::RowProducts<T> product{offsets.data_as<int64_t>() + first,
                                         last - first,
                                         column,
                                         factors,
                                         columns.numel(),
                                         x,
                                         width};
      const int64_t done = sum_row_products(product, kRun, to + first);
      if (done < last - first) matrix.fail_row(first + done);
    } else {
      using S = compute_type<T>;
      matrix.each_range(first, last, [&](int64_t r, int64_t begin, int64_t end) {
        to[r] = static_cast<T>(sum_of_terms<S, 4>(end - begin, [&](int64_t i) {
          const int64_t c = column[begin + i];
          if (static_cast<uint64_t>(c) >= static_cast<uint64_t>(width)) [[unlikely]]
            matrix.fail_column(c);
          return product_of(number(factors[begin + i]), number(x[c]));
        }));
      });
    }
  });
}

// ---- by a strided matrix ----

template <class T>
void csr_mm_cpu(const Tensor& values, const Tensor& crow, const Tensor& col, const Tensor& dense,
                const Tensor& out) {
  const Tensor v = aten::contiguous(values), x = aten::contiguous(dense);
  const Tensor offsets = aten::contiguous(crow), columns = aten::contiguous(col);
  const int64_t rows = out.size(0), width = out.size(1);
  const CompressedRows matrix("mm", offsets, columns, x.size(0));
  const T* const factors = v.data_as<T>();
  const T* const from = x.data_as<T>();
  T* const to = out.data_as<T>();
  if (width == 1) return csr_mv(matrix, offsets, columns, factors, x, out);
  matrix.each_piece(rows, width, [&](int64_t first, int64_t last) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      static const simd::SumRows<T> sum_rows = simd::sum_rows<T>();
      const simd::RowTable<T> table{from, x.size(0), width, width};
      const int64_t* const column = columns.data_as<int64_t>();
      std::vector<double> total;
      // Adds up `n` entries from `begin` on. The rows behind them are those of the next entries.
      const auto add = [&](int64_t begin, int64_t n, T* sum, double* wide) {
        const int64_t known = columns.numel() - begin;
        const int64_t done = sum_rows(table, column + begin, factors + begin, n, known, sum, wide);
        if (done != n) matrix.fail_columns(column + begin, n);
      };
      matrix.each_range(first, last, [&](int64_t r, int64_t begin, int64_t end) {
        const int64_t n = end - begin;
        T* const result = to + r * width;
        if (n <= kRun) return add(begin, n, result, nullptr);
        total.assign(static_cast<size_t>(width), 0);
        for (int64_t k = 0; k < n; k += kRun)
          add(begin + k, std::min(kRun, n - k), nullptr, total.data());
        std::transform(total.begin(), total.end(), result,
                       [](double sum) { return static_cast<T>(sum); });
      });
    } else {
      using S = compute_type<T>;
      std::vector<wide_type<S>> sums(static_cast<size_t>(width));
      matrix.each(first, last, [&](int64_t r, const CompressedRows::Row& row) {
        std::fill(sums.begin(), sums.end(), wide_type<S>(0));
        for (int64_t i = 0; i < row.count(); ++i) {
          const auto factor = number(factors[row.begin + i]);
          const T* const source = from + row.columns[i] * width;
          for (int64_t j = 0; j < width; ++j) {
            const S term = product_of(factor, number(source[j]));
            sums[j] = sum_of(sums[j], static_cast<wide_type<S>>(term));
          }
        }
        for (int64_t j = 0; j < width; ++j)
          to[r * width + j] = static_cast<T>(static_cast<S>(sums[j]));
      });
    }
  });
}

// ---- the sampled product ----

template <class T>
void csr_sampled_mm_cpu(const Tensor& a, const Tensor& b, const Tensor& crow, const Tensor& col,
                        const Tensor& out) {
  const Tensor x = aten::contiguous(a), y = aten::contiguous(b);
  const Tensor offsets = aten::contiguous(crow), columns = aten::contiguous(col);
  const int64_t rows = x.size(0), width = x.size(1);
  const CompressedRows matrix("sampled_addmm", offsets, columns, y.size(0));
  const T *const left = x.data_as<T>(), *const right = y.data_as<T>();
  T* const to = out.data_as<T>();
  matrix.each_piece(rows, width, [&](int64_t first, int64_t last) {
    using S = compute_type<T>;
    matrix.each(first, last, [&](int64_t r, const CompressedRows::Row& row) {
      const T* const u = left + r * width;
      for (int64_t i = 0; i < row.count(); ++i) {
        const T* const w = right + row.columns[i] * width;
        to[row.begin + i] = static_cast<T>(sum_of_terms<S, 8>(
            width, [&](int64_t j) { return product_of(number(u[j]), number(w[j])); }));
      }
    });
  });
}

const auto mm_registered = register_kernels<aten::ops::_csr_mm, DeviceType::CPU>(
    []<class T>() { return &csr_mm_cpu<T>; }, "csr_mm_cpu");
const auto sampled_mm_registered = register_kernels<aten::ops::_csr_sampled_mm, DeviceType::CPU>(
    []<class T>() { return &csr_sampled_mm_cpu<T>; }, "csr_sampled_mm_cpu");

}  // namespace
}  // namespace treadle::cpu
