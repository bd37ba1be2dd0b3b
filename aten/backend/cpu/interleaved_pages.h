// InterleavedPages: an interleaved traversal of the pages of a large block of memory.
//
// The hardware prefetches memory for a sequential traversal, but only to the end of a page. So a
// traversal in order waits at the start of each page. Interleaving several pages keeps the memory
// busy.
//
//   InterleavedPages turns(n, piece);
//   do {
//     for (int64_t i = turns.first; i < turns.end; ++i) ...;
//   } while (turns.next());
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace treadle::cpu {

class InterleavedPages {
 public:
  static constexpr int64_t kPageBytes = 4096;
  static constexpr int64_t kPieceBytes = 256;  // a turn of one page

  // `n` elements, of which `piece` fill kPieceBytes; 0: in order.
  InterleavedPages(int64_t n, int64_t piece) : end(n), n_(n), piece_(piece) {
    if (piece != 0) start(0);
  }

  int64_t first = 0, end;  // a part of [0, n); the last one ends at n

  bool next() {
    if (end == n_) return false;
    first += kPieces * piece_;
    if (first >= stop_) {
      turn_ += piece_;
      if (turn_ == kPieces * piece_) {
        start(stop_);
        return true;
      }
      first = begin_ + turn_;
    }
    end = first + piece_;
    return true;
  }

 private:
  static constexpr int64_t kPieces = kPageBytes / kPieceBytes, kPages = 4;

  // The next pages, from `begin` on; finally a rest of less than one page.
  void start(int64_t begin) {
    const int64_t page = kPieces * piece_, pages = std::min(kPages, (n_ - begin) / page);
    first = begin_ = begin;
    turn_ = 0;
    stop_ = pages > 0 ? begin + pages * page : n_;
    end = pages > 0 ? begin + piece_ : n_;
  }

  int64_t n_, piece_;
  int64_t begin_ = 0, stop_ = 0, turn_ = 0;  // the pages, and the offset in each of them
};

}  // namespace treadle::cpu
