// Rows of a compressed sparse matrix as kernels read them. Another thread may write the indices
// while a kernel runs, so a kernel copies those of a row, checks the copy, and uses the copy alone.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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
    int64_t begin, end;      // the numbers of its entries
    const int64_t* columns;  // that of entry `begin` first
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
    check<ErrorKind::Runtime>(offsets_[0] == 0 && all.offsets.back() == count_, OpName(op_),
                              "expected offsets of rows from 0 to ", count_, ", got ", offsets_[0],
                              " to ", all.offsets.back());
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
  [[noreturn]] void fail_range(int64_t row, int64_t begin, int64_t end) const {
    fail<ErrorKind::Runtime>(OpName(op_), "expected offsets of rows that do not fall, from 0 to ",
                             count_, ", got ", begin, " and ", end, " for row ", row);
  }

  // Calls f(first, last) for pieces of the rows from 0 up to `rows`, side by side. The pieces have
  // about as many entries each, as a few rows may have most of them. They depend on the matrix
  // alone. An entry takes as long as `work` additions of a vector loop.
  template <class F>
  void each_piece(int64_t rows, int64_t work, F&& f) const {
    if (rows <= 0) return;
    const int64_t all = count_ + rows;
    // Threads are woken where that takes a small part of the time.
    const int64_t share = std::max<int64_t>(1, kShare / std::max<int64_t>(1, work));
    const int64_t pieces = all < 4 * share ? 1 : std::min(rows, all / share);
    if (pieces == 1) return f(int64_t{0}, rows);
    std::vector<int64_t> starts(static_cast<size_t>(pieces) + 1, 0);
    for (int64_t p = 1; p < pieces; ++p)
      starts[p] = std::max(starts[p - 1], row_of(all / pieces * p, rows));
    starts[pieces] = rows;
    parallel_chunks(pieces, [&](int64_t p) {
      if (starts[p] < starts[p + 1]) f(starts[p], starts[p + 1]);
    });
  }

 private:
  static constexpr int64_t kShare = int64_t{1} << 19;  // the work of a piece

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
