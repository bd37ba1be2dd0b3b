// Rows of a compressed sparse matrix as kernels read them. Another thread may write the indices
// while a kernel runs, so a kernel copies those of a row, checks the copy, and uses the copy alone.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "aten/backend/cpu/dim_slices.h"
#include "core/base/error.h"

namespace treadle::cpu {

// The entries of some rows: where row r begins and ends, and the columns of its entries.
class CompressedRows {
 public:
  // `offsets` has a number more than there are rows. `columns` has `count` numbers below `width`.
  CompressedRows(const char* op, const int64_t* offsets, const int64_t* columns, int64_t count,
                 int64_t width)
      : op_(op), offsets_(offsets), columns_(columns), count_(count), width_(width) {}

  struct Row {
    int64_t begin, end;      // the numbers of its entries
    const int64_t* columns;  // that of entry `begin` first
    int64_t count() const { return end - begin; }
  };
  // The rows from `first` up to `last`, as f(r, row), in order. RuntimeError for indices that are
  // not those of such a matrix.
  template <class F>
  void each(int64_t first, int64_t last, F&& f) const {
    std::vector<int64_t> columns;
    int64_t begin = offsets_[first];
    for (int64_t r = first; r < last; ++r) {
      const int64_t end = offsets_[r + 1];
      check<ErrorKind::Runtime>(0 <= begin && begin <= end && end <= count_, OpName(op_),
                                "expected offsets of rows that do not fall, from 0 to ", count_,
                                ", got ", begin, " and ", end, " for row ", r);
      columns.assign(columns_ + begin, columns_ + end);
      uint64_t largest = 0;
      for (const int64_t c : columns) largest = std::max(largest, static_cast<uint64_t>(c));
      check<ErrorKind::Runtime>(columns.empty() || largest < static_cast<uint64_t>(width_),
                                OpName(op_), "expected indices from 0 to ", width_ - 1, ", got ",
                                static_cast<int64_t>(largest));
      f(r, Row{begin, end, columns.data()});
      begin = end;
    }
  }
  // The number of rows in a piece of a parallel loop, where an entry takes `work`.
  int64_t grain(int64_t rows, int64_t work) const {
    const int64_t entries = rows > 0 ? count_ / rows + 1 : 1;
    return grain_for(entries * std::max<int64_t>(1, work));
  }

 private:
  const char* op_;
  const int64_t *offsets_, *columns_;
  int64_t count_, width_;
};

}  // namespace treadle::cpu
