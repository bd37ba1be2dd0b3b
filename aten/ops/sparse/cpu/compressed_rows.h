// Rows of a compressed sparse matrix as kernels read them. Another thread may write the indices
// while a kernel runs, so a kernel copies those of a row, checks the copy, and uses the copy alone.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/indexing/cpu/entry_bounds.h"
#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace treadle::cpu {

// The entries of some rows: where row r begins and ends, and the columns of its entries.
class CompressedRows {
 public:
  // `crow` has a number more than there are rows, `col` numbers below `width`. Both are contiguous
  // and of int64, and outlive this.
  CompressedRows(const char* op, const Tensor& crow, const Tensor& col, int64_t width)
      : op_(op),
        offsets_(crow.data_as<int64_t>()),
        columns_(col.data_as<int64_t>()),
        count_(col.numel()),
        width_(width) {}

  struct Row {
    int64_t begin = 0, end = 0;        // the numbers of its entries
    const int64_t* columns = nullptr;  // that of entry `begin` first
    int64_t count() const { return end - begin; }
  };
  // The numbers of the first entry of a row and of the one behind its last, as f(r, begin, end),
  // for the rows from `first` up to `last`, in order. RuntimeError for offsets that are none.
  template <class F>
  void each_range(int64_t first, int64_t last, F&& f) const {
    int64_t begin = offsets_[first];
    for (int64_t r = first; r < last; ++r) {
      const int64_t end = offsets_[r + 1];
      if (begin < 0 || begin > end || end > count_) [[unlikely]]
        fail_range(r, begin, end);
      f(r, begin, end);
      begin = end;
    }
  }
  // The same, as f(r, row), with a copy of the columns, which are checked, too.
  template <class F>
  void each(int64_t first, int64_t last, F&& f) const {
    std::vector<int64_t> columns;
    each_range(first, last, [&](int64_t r, int64_t begin, int64_t end) {
      columns.assign(columns_ + begin, columns_ + end);
      require_inside(columns);
      f(r, Row{begin, end, columns.data()});
    });
  }
  // A copy of all of it, from entry 0 on. `Index` has room for the columns.
  template <class Index = int64_t>
  struct Copy {
    std::vector<int64_t> offsets;
    std::vector<Index> columns;
  };
  template <class Index = int64_t>
  Copy<Index> copy(int64_t rows) const {
    Copy<Index> all;
    all.offsets.reserve(static_cast<size_t>(rows) + 1);
    all.offsets.push_back(0);
    each_range(0, rows, [&](int64_t, int64_t, int64_t end) { all.offsets.push_back(end); });
    // Otherwise the columns are not those of the values with the same numbers.
    if (offsets_[0] != 0 || all.offsets.back() != count_) fail_ends(all.offsets.back());
    all.columns.resize(static_cast<size_t>(count_));
    const int64_t* const from = columns_;
    Index* const to = all.columns.data();
    const auto width = static_cast<uint64_t>(width_);
    bool outside = false;
    for (int64_t i = 0, count = count_; i < count; ++i) {
      const int64_t column = from[i];
      outside |= static_cast<uint64_t>(column) >= width;
      to[i] = static_cast<Index>(column);
    }
    if (outside) fail_columns(columns_, count_);
    return all;
  }
  // The error of a row that a kernel found wrong.
  [[noreturn]] void fail_row(int64_t row) const {
    each(row, row + 1, [](int64_t, const Row&) {});
    fail_meanwhile();
  }
  [[noreturn]] void fail_column(int64_t column) const {
    fail<ErrorKind::Runtime>(OpName(op_), "expected indices from 0 to ", width_ - 1, ", got ",
                             column);
  }

  // The first of these columns that is none is the one that the error names.
  [[noreturn]] void fail_columns(const int64_t* columns, int64_t count) const {
    for (int64_t i = 0; i < count; ++i)
      if (columns[i] < 0 || columns[i] >= width_) fail_column(columns[i]);
    fail_meanwhile();
  }
  [[noreturn]] void fail_meanwhile() const {
    fail<ErrorKind::Runtime>(OpName(op_), "expected indices that nobody writes meanwhile");
  }
  // RuntimeError unless the offsets of so many rows are those of all entries. Kernels that go by
  // entries and not by rows call it, with what they found.
  void require_all(int64_t rows, bool good = true) const {
    if (good && offsets_[0] == 0 && offsets_[rows] == count_) [[likely]]
      return;
    each_range(0, rows, [](int64_t, int64_t, int64_t) {});  // names a wrong row
    fail_ends(offsets_[rows]);
  }
  [[noreturn]] void fail_ends(int64_t last) const {
    fail<ErrorKind::Runtime>(OpName(op_), "expected offsets of rows from 0 to ", count_, ", got ",
                             offsets_[0], " to ", last);
  }
  [[noreturn]] void fail_range(int64_t row, int64_t begin, int64_t end) const {
    fail<ErrorKind::Runtime>(OpName(op_), "expected offsets of rows that do not fall, from 0 to ",
                             count_, ", got ", begin, " and ", end, " for row ", row);
  }

  // Calls f(first, last) for pieces of the rows from 0 up to `rows`, side by side. The pieces have
  // about as many entries each, as a few rows may have most of them. They depend on the matrix
  // alone. An entry takes as long as `work` additions of a vector loop.
  //
  // With `long_row`, a row that has as many entries as several pieces is left out of them. Then
  // long_row(r, begin, end, part) is called for it, which splits it into parts of `part` entries.
  template <class F, class G = std::nullptr_t>
  void each_piece(int64_t rows, int64_t work, F&& f, [[maybe_unused]] G&& long_row = {}) const {
    if (rows <= 0) return;
    const int64_t all = count_ + rows;
    // Threads are woken where that takes a small part of the time.
    const int64_t share = std::max<int64_t>(1, kShare / std::max<int64_t>(1, work));
    if (all < 4 * share) return f(int64_t{0}, rows);
    const int64_t count = std::min(rows, all / share);
    std::vector<Piece> pieces(static_cast<size_t>(count));
    int64_t first = 0;
    for (int64_t p = 0; p < count; ++p) {
      const int64_t last =
          p + 1 == count ? rows : std::max(first, row_of(all / count * (p + 1), rows));
      pieces[p] = {first, last, {}};
      // Rows before the last one of a piece have fewer entries than a piece.
      if (!std::is_null_pointer_v<std::decay_t<G>> && first < last) {
        const Row row{offsets_[last - 1], offsets_[last], nullptr};
        if (row.begin >= 0 && row.end <= count_ && row.count() > 4 * share) {
          pieces[p].long_row = row;
          --pieces[p].last;
        }
      }
      first = last;
    }
    parallel_chunks(count, [&](int64_t p) {
      if (pieces[p].first < pieces[p].last) f(pieces[p].first, pieces[p].last);
    });
    if constexpr (!std::is_null_pointer_v<std::decay_t<G>>) {
      for (const auto& [begin_row, r, row] : pieces)
        if (row.count() > 0) long_row(r, row.begin, row.end, share);
    }
  }

 private:
  static constexpr int64_t kShare = int64_t{1} << 19;  // the work of a piece
  struct Piece {
    int64_t first, last;
    Row long_row;  // row `last`, if it is a long one
  };

  // The first row before which there are so many rows and entries; any row where the offsets are
  // none.
  int64_t row_of(int64_t rows_and_entries, int64_t rows) const {
    int64_t low = 0, high = rows;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      // A wrong offset may be any number, so it is not added to.
      if (offsets_[middle] < rows_and_entries - middle)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  void require_inside(const std::vector<int64_t>& columns) const {
    const auto count = static_cast<int64_t>(columns.size());
    if (!all_inside(columns.data(), count, width_, 0)) fail_columns(columns.data(), count);
  }

  const char* op_;
  const int64_t *offsets_, *columns_;
  int64_t count_, width_;
};

}  // namespace treadle::cpu
