// The rows of entries by vectors: a number for each entry, and where rows begin.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

// Some entries of a compressed matrix, in order. Entries offsets[r], ..., offsets[r + 1] - 1 are
// those of row r. Offsets are checked as they are read, so another thread may write them meanwhile.
class EntryRows {
 public:
  // From entry `first` on, of `count`, which lie in so many rows.
  EntryRows(const int64_t* offsets, int64_t rows, int64_t count, int64_t first);

  // The row of the next entry, and the first entry behind that row. False if there is none.
  bool next(int64_t entry) {
    while (end <= entry) {
      if (row + 1 >= rows_) return false;
      ++row;
      const int64_t begin = end;
      end = offsets_[row + 1];
      if (end < begin || end > count_) return false;
    }
    return true;
  }
  int64_t row, end;

 private:
  const int64_t* offsets_;
  int64_t rows_, count_;
};

struct EntryRowKernels {
  // Writes the rows of entries from `first` up to `last` to `to`, that of the first one first.
  // False if the offsets are wrong.
  bool (*write_rows)(EntryRows& rows, int64_t first, int64_t last, int64_t* to);
  // Where rows begin, as far as entries from `first` up to `last` say: `row` are the rows of all
  // entries. Returns the number of the first entry whose row is less than the one before, or is
  // none of `rows`, or `last`.
  int64_t (*write_starts)(const int64_t* row, int64_t first, int64_t last, int64_t rows,
                          int64_t* starts);
};
EntryRowKernels entry_row_kernels();

// An entry in one word, for values of up to 32 bits: the value in the upper half, the row in the
// lower one. So an entry that moves is one store.
template <class V>
struct PackedEntryKernels {
  // Packs entries from `first` up to `last`, of values[first] and so on. `words` has room for
  // kPadding words more. False if the offsets are wrong.
  bool (*pack)(EntryRows& rows, int64_t first, int64_t last, const V* values, uint64_t* words);
  // Unpacks `count` words in place, which become rows.
  void (*unpack)(uint64_t* words, int64_t count, V* values);
};
inline constexpr int64_t kPadding = 8;
template <class V>
PackedEntryKernels<V> packed_entry_kernels();

}  // namespace treadle::simd
