// The product of two compressed sparse matrices, and its gradient. A row of the product is computed
// by one thread, in the order of the entries, so the bits do not depend on the number of threads.
//
// Gustavson's method: row r of the product is the sum of the rows of the second matrix that row r
// of the first names, times their factors. Sums are kept in a dense row. Which columns a row has is
// a bit for each of them, in words of 64. Where entries lie side by side, a word stands for many.
//
// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <span>

#include "aten/backend/cpu/long_sums.h"
#include "aten/backend/cpu/wrapping.h"
#include "aten/ops/_csr_row_dots.h"
#include "aten/ops/_csr_spgemm.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/sparse/cpu/compressed_rows.h"
#include "aten/ops/sparse/cpu/row_bits.h"

namespace treadle::cpu {
namespace {

// 64 columns of a row, from 64 * number on, and a bit for each that has an entry.
struct Word {
  uint32_t number;
  uint64_t bits;
};

// The second factor. A matrix that is much wider than it has entries has its columns numbered anew,
// in order, so that a dense row of them stays small.
class SecondFactor {
 public:
  SecondFactor(const CompressedRows::Copy& of, int64_t width) : offsets_(of.offsets) {
    const auto count = static_cast<int64_t>(of.columns.size());
    width_ = width;
    if (width > 4 * count + 4096) {
      names_ = of.columns;
      std::sort(names_.begin(), names_.end());
      names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
      width_ = static_cast<int64_t>(names_.size());
    }
    check<ErrorKind::NotImplemented>(width_ < int64_t{1} << 32, OpName("mm"),
                                     "expected fewer than 2^32 columns, got ", width_);
    columns_.reserve(of.columns.size());
    for (const int64_t c : of.columns) {
      const auto named = std::lower_bound(names_.begin(), names_.end(), c) - names_.begin();
      columns_.push_back(static_cast<uint32_t>(names_.empty() ? c : named));
    }
    make_words();
  }

  int64_t width() const { return width_; }
  int64_t entries(int64_t row) const { return offsets_[row + 1] - offsets_[row]; }
  int64_t column(int64_t number) const { return names_.empty() ? number : names_[number]; }
  // Asks for the entries of a row, whose place a processor does not foresee.
  template <class T>
  void prefetch(int64_t row, const T* values) const {
    const int64_t first = offsets_[row];
    for (int64_t i = 0; i < 32; i += 16) {
      __builtin_prefetch(columns_.data() + first + i);
      __builtin_prefetch(values + first + i);
    }
  }
  // Calls f(word) for words that a row has in all, some of them maybe in parts.
  template <class F>
  void each_word(int64_t row, F&& f) const {
    if (words_.empty()) {
      for (int64_t i = offsets_[row], end = offsets_[row + 1]; i < end; ++i)
        f(word_of(columns_[i]));
    } else {
      for (int64_t i = words_from_[row]; i < words_from_[row + 1]; ++i) f(words_[i]);
    }
  }
  // Calls f(entry, column) for each entry of a row.
  template <class F>
  void each_entry(int64_t row, F&& f) const {
    const uint32_t* const columns = columns_.data();
    for (int64_t i = offsets_[row], end = offsets_[row + 1]; i < end; ++i) f(i, columns[i]);
  }

 private:
  static Word word_of(uint32_t column) { return {column / 64, uint64_t{1} << (column % 64)}; }
  // Where most words have one column, none are kept.
  void make_words() {
    words_from_.push_back(0);
    for (size_t r = 0; r + 1 < offsets_.size(); ++r) {
      for (int64_t i = offsets_[r]; i < offsets_[r + 1]; ++i) {
        const Word word = word_of(columns_[i]);
        const bool is_new = i == offsets_[r] || words_.back().number != word.number;
        if (is_new) words_.push_back({word.number, 0});
        words_.back().bits |= word.bits;
      }
      words_from_.push_back(static_cast<int64_t>(words_.size()));
    }
    if (2 * words_.size() > columns_.size()) words_.clear();
  }

  const std::vector<int64_t>& offsets_;
  std::vector<uint32_t> columns_;
  std::vector<int64_t> names_;  // the columns that have entries, if they are numbered anew
  std::vector<Word> words_;
  std::vector<int64_t> words_from_;
  int64_t width_;
};

// The columns of a row of the product.
class RowColumns {
 public:
  explicit RowColumns(int64_t width)
      : bits_(static_cast<size_t>(width) / 64 + 1, 0),
        used_(bits_.size() + 1),
        columns_(static_cast<size_t>(width) + 8) {}

  void add(const Word& word) {
    uint64_t& bits = bits_[word.number];
    // Whether a word is new is seldom foreseen by a processor, so it is no branch.
    used_[count_] = word.number;
    count_ += bits == 0;
    bits |= word.bits;
  }
  // The columns in order, which are forgotten. They are valid until the next call.
  std::span<const uint32_t> take_sorted() {
    uint32_t* end = columns_.data();
    const auto begin = used_.begin(), behind = begin + static_cast<int64_t>(count_);
    if (begin == behind) return {};
    const auto [low, high] = std::minmax_element(begin, behind);
    // Most words between the first and the last are used, or it takes less time to sort them.
    if (*high - *low < 8 * count_) {
      end = simd::take_columns(bits_.data(), *low, *high + 1, end);
    } else {
      std::sort(begin, behind);
      for (size_t i = 0; i < count_; ++i)
        end = simd::take_columns(bits_.data(), used_[i], used_[i] + 1, end);
    }
    count_ = 0;
    return {columns_.data(), end};
  }

 private:
  std::vector<uint64_t> bits_;
  std::vector<uint32_t> used_;  // the words that have bits, in any order
  std::vector<uint32_t> columns_;
  size_t count_ = 0;
};

// Where pieces of rows of about as much work begin. They depend on the matrices alone.
std::vector<int64_t> pieces_of(const CompressedRows::Copy& a, const SecondFactor& b, int64_t rows) {
  const int64_t share = int64_t{1} << 19;
  std::vector<int64_t> starts{0};
  int64_t work = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = a.offsets[r]; i < a.offsets[r + 1]; ++i) work += b.entries(a.columns[i]);
    // A piece has a dense row of its own.
    if (work < std::max(share, 16 * b.width()) || r + 1 == rows) continue;
    starts.push_back(r + 1);
    work = 0;
  }
  starts.push_back(rows);
  return starts;
}

// Entries of the product, in blocks, as nobody knows how many there will be.
template <class T>
class Entries {
 public:
  // Room for so many more columns and values, side by side.
  std::pair<uint32_t*, T*> add(int64_t count) {
    if (blocks_.empty() || blocks_.back().count + count > blocks_.back().columns.numel()) {
      // Most products are small.
      const int64_t size = std::max(blocks_.empty() ? kFirst : kBlock, count);
      const ScalarType dtype = scalar_type_of<T>;
      blocks_.push_back({empty_cpu({size}, ScalarType::Int32), empty_cpu({size}, dtype), 0});
    }
    Block& block = blocks_.back();
    const int64_t at = block.count;
    block.count += count;
    return {static_cast<uint32_t*>(block.columns.data()) + at,
            block.values.template data_as<T>() + at};
  }
  // Writes all of them, and gives their memory back.
  void write(const SecondFactor& factor, int64_t* columns, T* values) {
    for (const Block& block : blocks_) {
      const auto* const from = static_cast<const uint32_t*>(block.columns.data());
      for (int64_t i = 0; i < block.count; ++i) columns[i] = factor.column(from[i]);
      std::copy_n(block.values.template data_as<T>(), block.count, values);
      columns += block.count;
      values += block.count;
    }
    blocks_.clear();
  }

 private:
  static constexpr int64_t kFirst = 1024, kBlock = int64_t{1} << 16;
  struct Block {
    Tensor columns, values;
    int64_t count;
  };
  std::vector<Block> blocks_;
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
  const CompressedRows::Copy a = CompressedRows("mm", offsets1, columns1, inner).copy(rows);
  const CompressedRows::Copy second = CompressedRows("mm", offsets2, columns2, columns).copy(inner);
  const SecondFactor b(second, columns);
  const T *const x = v1.data_as<T>(), *const y = v2.data_as<T>();
  constexpr int64_t kAhead = 4;
  const auto entries = static_cast<int64_t>(a.columns.size());
  const std::vector<int64_t> starts = pieces_of(a, b, rows);
  const auto in_pieces = [&](auto&& f) {
    parallel_chunks(static_cast<int64_t>(starts.size()) - 1,
                    [&](int64_t p) { f(p, starts[p], starts[p + 1]); });
  };

  const Tensor crow = empty_cpu({rows + 1}, ScalarType::Int64);
  int64_t* const ends = crow.data_as<int64_t>();
  ends[0] = 0;
  std::vector<Entries<T>> pieces(starts.size() - 1);
  in_pieces([&](int64_t p, int64_t first, int64_t last) {
    RowColumns row(b.width());
    std::vector<S> sums(static_cast<size_t>(b.width()), S(0));
    S* const sum = sums.data();
    for (int64_t r = first; r < last; ++r) {
      for (int64_t i = a.offsets[r]; i < a.offsets[r + 1]; ++i) {
        const S factor = static_cast<S>(x[i]);
        const int64_t k = a.columns[i];
        if (i + kAhead < entries) b.prefetch(a.columns[i + kAhead], y);
        b.each_word(k, [&](const Word& word) { row.add(word); });
        b.each_entry(k, [&](int64_t j, uint32_t c) {
          sum[c] = sum_of(sum[c], product_of(factor, static_cast<S>(y[j])));
        });
      }
      const std::span<const uint32_t> columns_of_row = row.take_sorted();
      const auto count = static_cast<int64_t>(columns_of_row.size());
      const auto [to_column, to] = pieces[p].add(count);
      for (int64_t i = 0; i < count; ++i) {
        const uint32_t c = columns_of_row[i];
        to_column[i] = c;
        to[i] = static_cast<T>(sum[c]);
        sum[c] = S(0);
      }
      ends[r + 1] = count;
    }
  });
  std::partial_sum(ends, ends + rows + 1, ends);
  const Tensor col = empty_cpu({ends[rows]}, ScalarType::Int64);
  const Tensor values = empty_cpu({ends[rows]}, values1.dtype());
  in_pieces([&](int64_t p, int64_t first, int64_t) {
    pieces[p].write(b, col.data_as<int64_t>() + ends[first], values.data_as<T>() + ends[first]);
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
