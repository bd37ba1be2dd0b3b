// IndexProgram: the values of an IndexFunction, for blocks of neighbouring loop elements.
//
// One operation after another runs over the whole block, so the time to find the next operation is
// shared by all elements.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aten/ops/indexing/index_map.h"

namespace treadle::cpu {

class IndexProgram {
 public:
  static constexpr int64_t kBlock = 256;

  // Keeps the function's operations, and `loops` by value.
  IndexProgram(const char* op, const shape::IndexFunction& function, IntList loops);

  // Memory for one thread.
  class Scratch {
    friend class IndexProgram;
    std::vector<int64_t> values;
  };

  // The values for the elements first, first + 1, ..., `count` <= kBlock of them. Where a value
  // does not fit into 64 bits, overflows[j] becomes true; others stay as they are. The pointer is
  // valid until the scratch is used again. ValueError for a division by 0, if nothing before it
  // overflowed.
  const int64_t* run(int64_t first, int64_t count, bool* overflows, Scratch& scratch) const;

 private:
  void fill_loop(int loop, int64_t first, int64_t count, int64_t* to) const;
  // `values` are those of the divisor with this text.
  void check_divisors(const std::string& divisor, const int64_t* values, int64_t first,
                      int64_t count, const bool* overflows) const;

  const char* op_;
  DimVector loops_;
  std::vector<shape::IndexNode> nodes_;  // those that the result needs, in order
};

}  // namespace treadle::cpu
