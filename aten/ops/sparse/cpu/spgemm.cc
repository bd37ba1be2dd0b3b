// The product of two compressed sparse matrices, and its gradient. A row of the product is computed
// by one thread, in the order of the entries, so the bits do not depend on the number of threads.
//
// Gustavson's method: row r of the product is the sum of the rows of the second matrix that row r
// of the first names, times their factors. Sums are kept in a dense row, with a flag for each
// column that has an entry. Where entries are few in a wide row, their columns are listed, too.
//
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "aten/backend/cpu/long_sums.h"
#include "aten/backend/cpu/wrapping.h"
#include "aten/ops/_csr_row_dots.h"
#include "aten/ops/_csr_spgemm.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/sparse/cpu/compressed_rows.h"
#include "aten/ops/sparse/cpu/row_flags.h"

namespace treadle::cpu {
namespace {

// The second factor. A matrix that is much wider than it has entries has its columns numbered anew,
// in order, so that a dense row of them stays small.
class SecondFactor {
 public:
  SecondFactor(const CompressedRows& of, int64_t rows, int64_t count, int64_t width)
      : width_(width) {
    if (width > 4 * count + 4096) {
      const CompressedRows::Copy<> all = of.copy(rows);
      names_ = all.columns;
      std::sort(names_.begin(), names_.end());
      names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
      width_ = static_cast<int64_t>(names_.size());
      entries_.offsets = all.offsets;
      for (const int64_t c : all.columns) {
        const auto name = std::lower_bound(names_.begin(), names_.end(), c) - names_.begin();
        entries_.columns.push_back(static_cast<uint32_t>(name));
      }
    } else {
      entries_ = of.copy<uint32_t>(rows);
    }
    check<ErrorKind::NotImplemented>(width_ < int64_t{1} << 32, OpName("mm"),
                                     "expected fewer than 2^32 columns, got ", width_);
    // A row is in order, unless somebody wrote its columns after they were checked.
    ranges_.reserve(static_cast<size_t>(rows));
    for (int64_t r = 0; r < rows; ++r) {
      Range range{UINT32_MAX, 0};
      for (int64_t i = begin(r); i < end(r); ++i) range.add({columns()[i], columns()[i]});
      ranges_.push_back(range);
    }
  }

  // The first and the last of some columns.
  struct Range {
    uint32_t low, high;
    void add(const Range& other) {
      low = std::min(low, other.low);
      high = std::max(high, other.high);
    }
  };
  int64_t width() const { return width_; }
  int64_t begin(int64_t row) const { return entries_.offsets[row]; }
  int64_t end(int64_t row) const { return entries_.offsets[row + 1]; }
  const Range& range(int64_t row) const { return ranges_[row]; }
  const uint32_t* columns() const { return entries_.columns.data(); }
  int64_t name(uint32_t column) const { return names_.empty() ? column : names_[column]; }

 private:
  CompressedRows::Copy<uint32_t> entries_;
  std::vector<Range> ranges_;
  std::vector<int64_t> names_;  // the columns that have entries, if they are numbered anew
  int64_t width_;
};

using Rows = CompressedRows::Copy<>;

// Rows of the product that take about as much work as those of other pieces. Pieces depend on the
// matrices alone.
struct Piece {
  int64_t first, last;
  int64_t most;  // entries
};
std::vector<Piece> pieces_of(const Rows& a, const SecondFactor& b, int64_t rows) {
  const int64_t share = std::max(int64_t{1} << 19, 16 * b.width());  // it has a dense row
  std::vector<Piece> pieces;
  Piece piece{0, 0, 0};
  int64_t work = 0;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t terms = 0;
    for (int64_t i = a.offsets[r]; i < a.offsets[r + 1]; ++i)
      terms += b.end(a.columns[i]) - b.begin(a.columns[i]);
    work += terms;
    piece.most += std::min(terms, b.width());
    piece.last = r + 1;
    if (work < share && r + 1 < rows) continue;
    pieces.push_back(piece);
    piece = {r + 1, r + 1, 0};
    work = 0;
  }
  return pieces;
}

// Computes rows of a product, one after another.
template <class T>
class RowProduct {
  using S = compute_type<T>;

 public:
  RowProduct(const Rows& a, const T* x, const SecondFactor& b, const T* y)
      : a_(a),
        x_(x),
        b_(b),
        y_(y),
        sums_(static_cast<size_t>(b.width()), S(0)),
        flags_(static_cast<size_t>(b.width()) + simd::kFlags, 0),
        columns_(static_cast<size_t>(b.width()) + simd::kFlags) {}

  // Writes the columns of row r, in order, and their values. Returns how many there are.
  int64_t write(int64_t r, uint32_t* to_column, T* to) {
    const int64_t begin = a_.offsets[r], end = a_.offsets[r + 1];
    SecondFactor::Range range{UINT32_MAX, 0};
    int64_t terms = 0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = a_.columns[i];
      range.add(b_.range(k));
      terms += b_.end(k) - b_.begin(k);
    }
    if (terms == 0) return 0;
    const uint32_t low = range.low / simd::kFlags, high = range.high / simd::kFlags + 1;
    uint8_t* const flags = flags_.data();
    uint32_t* const columns = columns_.data();
    uint32_t* behind = columns;
    if (high - low <= 4 * terms) {
      add_terms(begin, end, [=](uint32_t c) { flags[c] = 1; });
      behind = simd::take_columns(flags, low, high, columns);
    } else {
      // Whether a column is new is seldom foreseen by a processor, so it is no branch.
      add_terms(begin, end, [flags, &behind](uint32_t c) {
        *behind = c;
        behind += 1 - flags[c];
        flags[c] = 1;
      });
      std::sort(columns, behind);
      std::for_each(columns, behind, [=](uint32_t c) { flags[c] = 0; });
    }
    const int64_t count = behind - columns;
    S* const sums = sums_.data();
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t c = columns[i];
      to_column[i] = c;
      to[i] = static_cast<T>(sums[c]);
      sums[c] = S(0);
    }
    return count;
  }

 private:
  static constexpr int64_t kAhead = 4;  // entries

  // Adds up the terms of entries of the first factor, and calls note(column) for each.
  template <class F>
  void add_terms(int64_t first, int64_t last, F&& note) {
    S* const sums = sums_.data();
    const uint32_t* const columns = b_.columns();
    const T* const y = y_;
    const int64_t known = static_cast<int64_t>(a_.columns.size()) - 1;
    for (int64_t i = first; i < last; ++i) {
      // Processors do not foresee where the rows of the second factor lie.
      const int64_t next = b_.begin(a_.columns[std::min(i + kAhead, known)]);
      for (int64_t j = 0; j < 32; j += 16) {
        __builtin_prefetch(columns + next + j);
        __builtin_prefetch(y + next + j);
      }
      const S factor = static_cast<S>(x_[i]);
      const int64_t k = a_.columns[i];
      for (int64_t j = b_.begin(k), end = b_.end(k); j < end; ++j) {
        const uint32_t c = columns[j];
        sums[c] = sum_of(sums[c], product_of(factor, static_cast<S>(y[j])));
        note(c);
      }
    }
  }

  const Rows& a_;
  const T* const x_;
  const SecondFactor& b_;
  const T* const y_;
  std::vector<S> sums_;
  std::vector<uint8_t> flags_;
  std::vector<uint32_t> columns_;  // those of a row, with room for what is written behind them
};

// The entries of a piece of the product, in arrays that may be longer.
struct Entries {
  Tensor columns, values;
  int64_t count = 0;

  Entries() = default;
  Entries(int64_t most, ScalarType dtype)
      : columns(empty_cpu({most}, ScalarType::Int32)), values(empty_cpu({most}, dtype)) {}
  uint32_t* column() const { return static_cast<uint32_t*>(columns.data()); }
};

template <class T>
std::tuple<Tensor, Tensor, Tensor> csr_spgemm_cpu(const Tensor& values1, const Tensor& crow1,
                                                  const Tensor& col1, const Tensor& values2,
                                                  const Tensor& crow2, const Tensor& col2,
                                                  int64_t columns) {
  const Tensor v1 = aten::contiguous(values1), v2 = aten::contiguous(values2);
  const Tensor offsets1 = aten::contiguous(crow1), columns1 = aten::contiguous(col1);
  const Tensor offsets2 = aten::contiguous(crow2), columns2 = aten::contiguous(col2);
  const int64_t rows = crow1.numel() - 1, inner = crow2.numel() - 1;
  const ScalarType dtype = values1.dtype();
  const Rows a = CompressedRows("mm", offsets1, columns1, inner).copy(rows);
  const SecondFactor b(CompressedRows("mm", offsets2, columns2, columns), inner, col2.numel(),
                       columns);
  const std::vector<Piece> pieces = pieces_of(a, b, rows);
  const auto in_pieces = [&](auto&& f) {
    parallel_chunks(static_cast<int64_t>(pieces.size()), [&](int64_t p) { f(pieces[p], p); });
  };

  const Tensor crow = empty_cpu({rows + 1}, ScalarType::Int64);
  int64_t* const ends = crow.data_as<int64_t>();
  ends[0] = 0;
  std::vector<Entries> found(pieces.size());
  in_pieces([&](const Piece& piece, int64_t p) {
    RowProduct<T> product(a, v1.data_as<T>(), b, v2.data_as<T>());
    Entries all(piece.most, dtype);
    for (int64_t r = piece.first; r < piece.last; ++r) {
      ends[r + 1] = product.write(r, all.column() + all.count, all.values.data_as<T>() + all.count);
      all.count += ends[r + 1];
    }
    // Pieces wait for each other. Where terms share columns, this takes less memory meanwhile.
    if (2 * all.count < piece.most) {
      Entries few(all.count, dtype);
      std::copy_n(all.column(), all.count, few.column());
      std::copy_n(all.values.data_as<T>(), all.count, few.values.data_as<T>());
      few.count = all.count;
      all = few;
    }
    found[p] = all;
  });
  std::partial_sum(ends, ends + rows + 1, ends);
  const Tensor col = empty_cpu({ends[rows]}, ScalarType::Int64);
  const Tensor values = empty_cpu({ends[rows]}, dtype);
  in_pieces([&](const Piece& piece, int64_t p) {
    const Entries all = std::move(found[p]);
    const uint32_t* const from = all.column();
    int64_t* const to = col.data_as<int64_t>() + ends[piece.first];
    for (int64_t i = 0; i < all.count; ++i) to[i] = b.name(from[i]);
    std::copy_n(all.values.data_as<T>(), all.count, values.data_as<T>() + ends[piece.first]);
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
  const CompressedRows pattern("mm", offsets, columns, others);
  const CompressedRows a("mm", offsets1, columns1, kAny);
  const CompressedRows b("mm", offsets2, columns2, kAny);
  check<ErrorKind::Runtime>(crow1.numel() - 1 == rows, OpName("mm"), "expected ", rows,
                            " rows, got ", crow1.numel() - 1);
  const T *const x = v1.data_as<T>(), *const y = v2.data_as<T>();
  T* const to = out.data_as<T>();
  pattern.each_piece(rows, 16, [&](int64_t first, int64_t last) {
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
                       sum = sum_of(sum, static_cast<wide_type<S>>(
                                             product_of(static_cast<S>(x[u.begin + j++]),
                                                        static_cast<S>(y[w.begin + k++]))));
                   }
                   to[entries.begin + i] = static_cast<T>(static_cast<S>(sum));
                 });
        }
      });
    });
  });
}

const auto spgemm_registered = register_kernels<aten::ops::_csr_spgemm, DeviceType::CPU>(
    []<class T>() { return &csr_spgemm_cpu<T>; }, "csr_spgemm_cpu");
const auto row_dots_registered = register_kernels<aten::ops::_csr_row_dots, DeviceType::CPU>(
    []<class T>() { return &csr_row_dots_cpu<T>; }, "csr_row_dots_cpu");

}  // namespace
}  // namespace treadle::cpu
