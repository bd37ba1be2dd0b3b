// Cascade: joins the folds of pieces in pairs. Long folds are cut into chunks, and chunks into
// pieces, by sizes alone, so that their bits do not depend on threads.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <vector>

#include "aten/engine/cpu/reduce_blocks.h"

namespace treadle::simd {

inline constexpr int64_t kPiece = 4096;       // elements folded at once
inline constexpr int64_t kChunk = 64 * 1024;  // elements of a parallel chunk; a multiple of kPiece

// Combines results of pieces in pairs, as they come: the n-th carries like a binary counter.
class Cascade {
 public:
  Cascade(const ReduceFunctions& f, int64_t width, int64_t item)
      : f_(f), width_(width), bytes_(width * item) {}

  // Adds a piece's result, which it copies.
  void push(const char* piece) {
    const char* carry = piece;
    int64_t level = 0;
    for (int64_t n = count_++; n & 1; n >>= 1, ++level) {
      f_.combine(at(level), carry, width_);
      carry = at(level);
    }
    const size_t needed = static_cast<size_t>((level + 1) * bytes_);
    if (levels_.size() < needed) {
      const size_t offset = level > 0 ? static_cast<size_t>((level - 1) * bytes_) : 0;
      levels_.resize(needed);
      if (level > 0) carry = levels_.data() + offset;
    }
    std::memcpy(at(level), carry, static_cast<size_t>(bytes_));
  }

  // The result of all; at least one piece was pushed.
  const char* finish() {
    char* result = nullptr;
    int64_t level = 0;
    for (int64_t n = count_; n != 0; n >>= 1, ++level) {
      if (!(n & 1)) continue;
      if (result != nullptr) f_.combine(at(level), result, width_);
      result = at(level);
    }
    count_ = 0;
    return result;
  }

 private:
  char* at(int64_t level) { return levels_.data() + level * bytes_; }

  const ReduceFunctions& f_;
  int64_t width_, bytes_;
  int64_t count_ = 0;
  std::vector<char> levels_;  // the result of 2^level pieces each
};

}  // namespace treadle::simd
