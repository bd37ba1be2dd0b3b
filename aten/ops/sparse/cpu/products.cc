// Products with a compressed sparse matrix: by a strided matrix, of its transpose and a vector, and
// the sampled product of two strided ones. A row of the result is computed by one thread, in the
// order of the entries. A very long row has parts that depend on the matrix alone, and they are
// added up in order. So the bits do not depend on the number of threads.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/long_sums.h"
#include "aten/backend/cpu/wrapping.h"
#include "aten/ops/_csr_mm.h"
#include "aten/ops/_csr_mv_turned.h"
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

// Float and double have kernels of vectors.
template <class T>
inline constexpr bool is_by_vectors = std::is_same_v<T, float> || std::is_same_v<T, double>;

// Computes the products of parts of a long row, side by side, and adds them up, in order. A part
// has about `part` entries. `product` is called as product(first entry, entries, out), where `out`
// has `width` elements.
template <class T, class F>
void sum_of_parts(int64_t begin, int64_t end, int64_t part, int64_t width, T* out, F&& product) {
  const int64_t size = (part + kRun - 1) / kRun * kRun;
  const int64_t parts = (end - begin + size - 1) / size;
  std::vector<T> sums(static_cast<size_t>(parts * width));
  parallel_chunks(parts, [&](int64_t p) {
    const int64_t first = begin + p * size;
    product(first, std::min(size, end - first), sums.data() + p * width);
  });
  for (int64_t j = 0; j < width; ++j) {
    double total = 0;
    for (int64_t p = 0; p < parts; ++p) total += static_cast<double>(sums[p * width + j]);
    out[j] = static_cast<T>(total);
  }
}

template <class T>
void csr_mv(const CompressedRows& matrix, const Tensor& offsets, const Tensor& columns,
            const T* factors, const Tensor& vector, const Tensor& out) {
  const int64_t* const column = columns.data_as<int64_t>();
  const T* const x = vector.data_as<T>();
  T* const to = out.data_as<T>();
  const int64_t width = vector.numel();
  constexpr int64_t kWork = 8;  // the elements of the vector are apart
  if constexpr (is_by_vectors<T>) {
    const auto sum_row_products = simd::sum_row_products<T>(simd::gathers_at_once(width));
    // Rows from `first` on, whose entries are where `bounds` says.
    const auto multiply = [&](const int64_t* bounds, int64_t first, int64_t rows, T* sums) {
      const simd::RowProducts<T> product{bounds, rows, column, factors, columns.numel(), x, width};
      const int64_t done = sum_row_products(product, kRun, sums);
      if (done < rows) matrix.fail_row(first + done);
    };
    matrix.each_piece(
        out.numel(), kWork,
        [&](int64_t first, int64_t last) {
          multiply(offsets.data_as<int64_t>() + first, first, last - first, to + first);
        },
        [&](int64_t r, int64_t begin, int64_t end, int64_t part) {
          sum_of_parts(begin, end, part, 1, to + r, [&](int64_t first, int64_t n, T* sum) {
            const int64_t bounds[] = {first, first + n};
            multiply(bounds, r, 1, sum);
          });
        });
  } else {
    using S = compute_type<T>;
    matrix.each_piece(out.numel(), kWork, [&](int64_t first, int64_t last) {
      matrix.each_range(first, last, [&](int64_t r, int64_t begin, int64_t end) {
        to[r] = static_cast<T>(sum_of_terms<S, 4>(end - begin, [&](int64_t i) {
          const int64_t c = column[begin + i];
          if (static_cast<uint64_t>(c) >= static_cast<uint64_t>(width)) [[unlikely]]
            matrix.fail_column(c);
          return product_of(number(factors[begin + i]), number(x[c]));
        }));
      });
    });
  }
}

// ---- by a strided matrix ----

template <class T>
void csr_mm_by_vectors(const CompressedRows& matrix, const Tensor& columns, const T* factors,
                       const Tensor& dense, const Tensor& out) {
  static const simd::SumRows<T> sum_rows = simd::sum_rows<T>();
  const int64_t width = out.size(1);
  const simd::RowTable<T> table{dense.data_as<T>(), dense.size(0), width, width};
  const int64_t* const column = columns.data_as<int64_t>();
  T* const to = out.data_as<T>();
  // Adds up `n` entries from `begin` on. The rows behind them are those of the next entries.
  const auto add = [&](int64_t begin, int64_t n, T* sum, double* wide) {
    const int64_t known = columns.numel() - begin;
    const int64_t done = sum_rows(table, column + begin, factors + begin, n, known, sum, wide);
    if (done != n) matrix.fail_columns(column + begin, n);
  };
  const auto add_all = [&](int64_t begin, int64_t n, T* sum, std::vector<double>& total) {
    if (n <= kRun) return add(begin, n, sum, nullptr);
    total.assign(static_cast<size_t>(width), 0);
    for (int64_t k = 0; k < n; k += kRun)
      add(begin + k, std::min(kRun, n - k), nullptr, total.data());
    std::transform(total.begin(), total.end(), sum, [](double x) { return static_cast<T>(x); });
  };
  matrix.each_piece(
      out.size(0), width,
      [&](int64_t first, int64_t last) {
        std::vector<double> total;
        matrix.each_range(first, last, [&](int64_t r, int64_t begin, int64_t end) {
          add_all(begin, end - begin, to + r * width, total);
        });
      },
      [&](int64_t r, int64_t begin, int64_t end, int64_t part) {
        sum_of_parts(begin, end, part, width, to + r * width,
                     [&](int64_t first, int64_t n, T* sums) {
                       std::vector<double> total;
                       add_all(first, n, sums, total);
                     });
      });
}

template <class T>
void csr_mm_cpu(const Tensor& values, const Tensor& crow, const Tensor& col, const Tensor& dense,
                const Tensor& out) {
  const Tensor v = aten::contiguous(values), x = aten::contiguous(dense);
  const Tensor offsets = aten::contiguous(crow), columns = aten::contiguous(col);
  const int64_t rows = out.size(0), width = out.size(1);
  const CompressedRows matrix("mm", offsets, columns, x.size(0));
  const T* const factors = v.data_as<T>();
  if (width == 1) return csr_mv(matrix, offsets, columns, factors, x, out);
  if constexpr (is_by_vectors<T>) {
    csr_mm_by_vectors(matrix, columns, factors, x, out);
  } else {
    using S = compute_type<T>;
    const T* const from = x.data_as<T>();
    T* const to = out.data_as<T>();
    matrix.each_piece(rows, width, [&](int64_t first, int64_t last) {
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
    });
  }
}

// ---- the transpose by a vector ----

// Adds kCount entries of a row to the sums of their columns. False if a column is none.
template <int64_t kCount, class T, class X, class W>
[[gnu::always_inline]] inline bool add_entries(const int64_t* column, const T* factor, X scale,
                                               uint64_t width, W* sums) {
  uint64_t c[kCount];
  bool wrong = false;
  for (int64_t k = 0; k < kCount; ++k) {
    c[k] = static_cast<uint64_t>(column[k]);
    wrong |= c[k] >= width;
  }
  if (wrong) [[unlikely]]
    return false;
  for (int64_t k = 0; k < kCount; ++k) {
    const auto term = static_cast<X>(product_of(number(factor[k]), scale));
    sums[c[k]] = sum_of(sums[c[k]], static_cast<W>(term));
  }
  return true;
}

// The rows are split into pieces, which have sums of their own and depend on the matrix alone.
template <class T>
void csr_mv_turned_cpu(const Tensor& values, const Tensor& crow, const Tensor& col,
                       const Tensor& vector, int64_t width, const Tensor& out) {
  using S = compute_type<T>;
  using W = wide_type<S>;
  constexpr int64_t kPiece = int64_t{1} << 16, kMost = 16, kStep = 4, kLong = 8 * kStep;
  const Tensor v = aten::contiguous(values), x = aten::contiguous(vector);
  const Tensor offsets = aten::contiguous(crow), columns = aten::contiguous(col);
  const CompressedRows matrix("mv", offsets, columns, width);
  const int64_t rows = crow.numel() - 1, count = col.numel();
  const int64_t* const offset = offsets.data_as<int64_t>();
  const int64_t pieces = std::clamp<int64_t>(count / std::max(kPiece, 4 * width), 1, kMost);
  std::vector<int64_t> bounds{0};
  for (int64_t p = 1; p < pieces; ++p) {
    const int64_t r = std::lower_bound(offset, offset + rows, count * p / pieces) - offset;
    bounds.push_back(std::max(bounds.back(), r));
  }
  bounds.push_back(rows);
  std::vector<W> sums(static_cast<size_t>(pieces * width));
  parallel_chunks(pieces, [&](int64_t p) {
    const int64_t* const column = columns.data_as<int64_t>();
    const T *const factor = v.data_as<T>(), *const from = x.data_as<T>();
    W* const sum = sums.data() + p * width;
    const auto m = static_cast<uint64_t>(width);
    matrix.each_range(bounds[p], bounds[p + 1], [=, &matrix](int64_t r, int64_t i, int64_t end) {
      const S scale = number(from[r]);
      if (end - i >= kLong) {
        for (; i + kStep <= end; i += kStep)
          if (!add_entries<kStep>(column + i, factor + i, scale, m, sum)) [[unlikely]]
            matrix.fail_columns(column + i, kStep);
      }
      for (; i < end; ++i)
        if (!add_entries<1>(column + i, factor + i, scale, m, sum)) [[unlikely]]
          matrix.fail_columns(column + i, 1);
    });
  });
  T* const to = out.data_as<T>();
  for (int64_t c = 0; c < width; ++c) {
    W total = sums[static_cast<size_t>(c)];
    for (int64_t p = 1; p < pieces; ++p)
      total = sum_of(total, sums[static_cast<size_t>(p * width + c)]);
    to[c] = static_cast<T>(static_cast<S>(total));
  }
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
const auto mv_turned_registered = register_kernels<aten::ops::_csr_mv_turned, DeviceType::CPU>(
    []<class T>() { return &csr_mv_turned_cpu<T>; }, "csr_mv_turned_cpu");
const auto sampled_mm_registered = register_kernels<aten::ops::_csr_sampled_mm, DeviceType::CPU>(
    []<class T>() { return &csr_sampled_mm_cpu<T>; }, "csr_sampled_mm_cpu");

}  // namespace
}  // namespace treadle::cpu
