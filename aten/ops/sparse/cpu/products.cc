// Products with a compressed sparse matrix: by a strided matrix, the sampled product of two strided
// ones, and by another sparse matrix. A row of the result is computed by one thread, in the order
// of the entries, so the bits do not depend on the number of threads.
//
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <numeric>

#include "aten/backend/cpu/long_sums.h"
#include "aten/backend/cpu/wrapping.h"
#include "aten/ops/_csr_mm.h"
#include "aten/ops/_csr_row_dots.h"
#include "aten/ops/_csr_sampled_mm.h"
#include "aten/ops/_csr_spgemm.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/indexing/cpu/row_sums.h"
#include "aten/ops/sparse/cpu/compressed_rows.h"

namespace treadle::cpu {
namespace {

template <class T>
compute_type<T> number(const T& x) {
  return static_cast<compute_type<T>>(x);
}

CompressedRows rows_of(const char* op, const Tensor& crow, const Tensor& col, int64_t width) {
  return CompressedRows(op, crow.data_as<int64_t>(), col.data_as<int64_t>(), col.numel(), width);
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

// ---- by a vector

template <class T>
void csr_mv(const CompressedRows& matrix, const int64_t* columns, const T* factors, const T* x,
            int64_t rows, int64_t count, T* out) {
  using S = compute_type<T>;
  parallel_for(rows, matrix.grain(rows, 4), [&](int64_t first, int64_t last) {
    matrix.each_range(first, last, [&](int64_t r, int64_t begin, int64_t end) {
      out[r] = static_cast<T>(sum_of_terms<S, 4>(end - begin, [&](int64_t i) {
        const int64_t c = columns[begin + i];
        if (static_cast<uint64_t>(c) >= static_cast<uint64_t>(count)) [[unlikely]]
          matrix.fail_column(c);
        return product_of(number(factors[begin + i]), number(x[c]));
      }));
    });
  });
}

// ---- by a strided matrix ----

template <class T>
void csr_mm_cpu(const Tensor& values, const Tensor& crow, const Tensor& col, const Tensor& dense,
                const Tensor& out) {
  const Tensor v = aten::contiguous(values), x = aten::contiguous(dense);
  const Tensor offsets = aten::contiguous(crow), columns = aten::contiguous(col);
  const int64_t rows = out.size(0), width = out.size(1);
  const CompressedRows matrix = rows_of("mm", offsets, columns, x.size(0));
  const T* const factors = v.data_as<T>();
  const T* const from = x.data_as<T>();
  T* const to = out.data_as<T>();
  if (width == 1)
    return csr_mv(matrix, columns.data_as<int64_t>(), factors, from, rows, x.size(0), to);
  parallel_for(rows, matrix.grain(rows, width), [&](int64_t first, int64_t last) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      static const simd::SumRows<T> sum_rows = simd::sum_rows<T>();
      const simd::RowTable<T> table{from, width, width};
      std::vector<double> total;
      matrix.each(first, last, [&](int64_t r, const CompressedRows::Row& row) {
        const int64_t n = row.count();
        T* const result = to + r * width;
        if (n <= kRun)
          return sum_rows(table, row.columns, factors + row.begin, n, n, result, nullptr);
        total.assign(static_cast<size_t>(width), 0);
        for (int64_t k = 0; k < n; k += kRun)
          sum_rows(table, row.columns + k, factors + row.begin + k, std::min(kRun, n - k), n - k,
                   nullptr, total.data());
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
  const CompressedRows matrix = rows_of("sampled_addmm", offsets, columns, y.size(0));
  const T *const left = x.data_as<T>(), *const right = y.data_as<T>();
  T* const to = out.data_as<T>();
  parallel_for(rows, matrix.grain(rows, width), [&](int64_t first, int64_t last) {
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

// ---- by a sparse matrix (Gustavson's method)

// Which columns a row of the result has: a bit for each, and a list. Whether a column is new is
// seldom foreseen by a processor, so it is no branch.
class RowColumns {
 public:
  explicit RowColumns(int64_t width)
      : bits_(static_cast<size_t>(width) / 64 + 1, 0), columns_(static_cast<size_t>(width) + 1) {}

  void add(int64_t column) {
    uint64_t& word = bits_[static_cast<size_t>(column) / 64];
    const uint64_t bit = uint64_t{1} << (column % 64);
    columns_[count_] = column;
    count_ += (word & bit) == 0;
    word |= bit;
  }
  // Calls f(column) for each column, in order, and forgets them all.
  template <class F>
  void take_sorted(F&& f) {
    // The columns of a long row are read off the bits, which takes less time than to sort them.
    if (count_ > bits_.size() / 4) {
      for (size_t w = 0; w < bits_.size(); ++w) {
        for (uint64_t word = bits_[w]; word != 0; word &= word - 1)
          f(static_cast<int64_t>(w) * 64 + std::countr_zero(word));
        bits_[w] = 0;
      }
    } else {
      std::sort(columns_.begin(), columns_.begin() + static_cast<int64_t>(count_));
      for (size_t i = 0; i < count_; ++i) {
        f(columns_[i]);
        bits_[static_cast<size_t>(columns_[i]) / 64] = 0;
      }
    }
    count_ = 0;
  }
  // The number of columns, which are forgotten.
  int64_t take_count() {
    const size_t count = count_;
    for (size_t i = 0; i < count; ++i) bits_[static_cast<size_t>(columns_[i]) / 64] = 0;
    count_ = 0;
    return static_cast<int64_t>(count);
  }

 private:
  std::vector<uint64_t> bits_;
  std::vector<int64_t> columns_;
  size_t count_ = 0;
};

template <class T>
std::tuple<Tensor, Tensor, Tensor> csr_spgemm_cpu(const Tensor& values1, const Tensor& crow1,
                                                  const Tensor& col1, const Tensor& values2,
                                                  const Tensor& crow2, const Tensor& col2,
                                                  int64_t columns) {
  using S = compute_type<T>;
  const Tensor v1 = aten::contiguous(values1), v2 = aten::contiguous(values2);
  const Tensor offsets1 = aten::contiguous(crow1), columns1 = aten::contiguous(col1);
  const Tensor offsets2 = aten::contiguous(crow2), columns2 = aten::contiguous(col2);
  const int64_t rows = crow1.numel() - 1, inner = crow2.numel() - 1;
  // Both are read twice: to count the entries of rows, and to compute them.
  const CompressedRows::Copy a = rows_of("mm", offsets1, columns1, inner).copy(rows);
  const CompressedRows::Copy b = rows_of("mm", offsets2, columns2, columns).copy(inner);
  const T *const x = v1.data_as<T>(), *const y = v2.data_as<T>();
  const int64_t piece = std::max<int64_t>(64, rows / 64), pieces = (rows + piece - 1) / piece;
  const auto in_pieces = [&](auto&& f) {
    parallel_chunks(pieces, [&](int64_t p) { f(p * piece, std::min(rows, (p + 1) * piece)); });
  };

  const Tensor crow = empty_cpu({rows + 1}, ScalarType::Int64);
  int64_t* const ends = crow.data_as<int64_t>();
  ends[0] = 0;
  in_pieces([&](int64_t first, int64_t last) {
    RowColumns row(columns);
    for (int64_t r = first; r < last; ++r) {
      for (int64_t i = a.offsets[r]; i < a.offsets[r + 1]; ++i) {
        const int64_t k = a.columns[i];
        for (int64_t j = b.offsets[k]; j < b.offsets[k + 1]; ++j) row.add(b.columns[j]);
      }
      ends[r + 1] = row.take_count();
    }
  });
  std::partial_sum(ends, ends + rows + 1, ends);
  const Tensor col = empty_cpu({ends[rows]}, ScalarType::Int64);
  const Tensor values = empty_cpu({ends[rows]}, values1.dtype());
  int64_t* const to_columns = col.data_as<int64_t>();
  T* const to = values.data_as<T>();
  in_pieces([&](int64_t first, int64_t last) {
    RowColumns row(columns);
    std::vector<S> sums(static_cast<size_t>(columns), S(0));
    for (int64_t r = first; r < last; ++r) {
      for (int64_t i = a.offsets[r]; i < a.offsets[r + 1]; ++i) {
        const S factor = number(x[i]);
        const int64_t k = a.columns[i];
        for (int64_t j = b.offsets[k]; j < b.offsets[k + 1]; ++j) {
          const int64_t c = b.columns[j];
          row.add(c);
          S& sum = sums[static_cast<size_t>(c)];
          sum = sum_of(sum, product_of(factor, number(y[j])));
        }
      }
      int64_t at = ends[r];
      row.take_sorted([&](int64_t c) {
        to_columns[at] = c;
        to[at++] = static_cast<T>(sums[static_cast<size_t>(c)]);
        sums[static_cast<size_t>(c)] = S(0);
      });
    }
  });
  return {crow, col, values};
}

// ---- its gradient ----

// For each entry (r, c) of a pattern the product of row r of `a` and row c of `b`, both sparse.
template <class T>
void csr_row_dots_cpu(const Tensor& values1, const Tensor& crow1, const Tensor& col1,
                      const Tensor& values2, const Tensor& crow2, const Tensor& col2,
                      const Tensor& crow, const Tensor& col, const Tensor& out) {
  using S = compute_type<T>;
  const Tensor v1 = aten::contiguous(values1), v2 = aten::contiguous(values2);
  const Tensor offsets1 = aten::contiguous(crow1), columns1 = aten::contiguous(col1);
  const Tensor offsets2 = aten::contiguous(crow2), columns2 = aten::contiguous(col2);
  const Tensor offsets = aten::contiguous(crow), columns = aten::contiguous(col);
  const int64_t rows = crow.numel() - 1, others = crow2.numel() - 1;
  constexpr int64_t kAny = INT64_MAX;
  const CompressedRows pattern = rows_of("mm", offsets, columns, others);
  const CompressedRows a = rows_of("mm", offsets1, columns1, kAny);
  const CompressedRows b = rows_of("mm", offsets2, columns2, kAny);
  check<ErrorKind::Runtime>(crow1.numel() - 1 == rows, OpName("mm"), "expected ", rows,
                            " rows, got ", crow1.numel() - 1);
  const T *const x = v1.data_as<T>(), *const y = v2.data_as<T>();
  T* const to = out.data_as<T>();
  parallel_for(rows, pattern.grain(rows, 16), [&](int64_t first, int64_t last) {
    pattern.each(first, last, [&](int64_t r, const CompressedRows::Row& entries) {
      a.each(r, r + 1, [&](int64_t, const CompressedRows::Row& u) {
        for (int64_t i = 0; i < entries.count(); ++i) {
          b.each(entries.columns[i], entries.columns[i] + 1,
                 [&](int64_t, const CompressedRows::Row& w) {
                   wide_type<S> sum(0);
                   for (int64_t j = 0, k = 0; j < u.count() && k < w.count();) {
                     if (u.columns[j] < w.columns[k])
                       ++j;
                     else if (w.columns[k] < u.columns[j])
                       ++k;
                     else
                       sum = sum_of(sum, static_cast<wide_type<S>>(product_of(
                                             number(x[u.begin + j++]), number(y[w.begin + k++]))));
                   }
                   to[entries.begin + i] = static_cast<T>(static_cast<S>(sum));
                 });
        }
      });
    });
  });
}

const auto mm_registered = register_kernels<aten::ops::_csr_mm, DeviceType::CPU>(
    []<class T>() { return &csr_mm_cpu<T>; }, "csr_mm_cpu");
const auto sampled_mm_registered = register_kernels<aten::ops::_csr_sampled_mm, DeviceType::CPU>(
    []<class T>() { return &csr_sampled_mm_cpu<T>; }, "csr_sampled_mm_cpu");
const auto spgemm_registered = register_kernels<aten::ops::_csr_spgemm, DeviceType::CPU>(
    []<class T>() { return &csr_spgemm_cpu<T>; }, "csr_spgemm_cpu");
const auto row_dots_registered = register_kernels<aten::ops::_csr_row_dots, DeviceType::CPU>(
    []<class T>() { return &csr_row_dots_cpu<T>; }, "csr_row_dots_cpu");

}  // namespace
}  // namespace treadle::cpu
