// Sums of a few rows of a table, by vectors.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

// A table of `rows` rows of `width` elements. Row i begins at table[i * stride].
template <class T>
struct RowTable {
  const T* table;
  int64_t rows, stride, width;
};

// The sum of rows rows[0], ..., rows[count - 1], times their factors, added in this order. Null
// `factors` are ones. `sum` does not overlap the table. If `total` is not null, it is added to, and
// `sum` is not written. The rows up to rows[known - 1] are expected to be summed next.
//
// Returns `count`, or the place in `rows` of a number that is none of a row; then the sum has no
// meaning. Each number is checked as it is read, so another thread may write them meanwhile.
template <class T>
using SumRows = int64_t (*)(const RowTable<T>& of, const int64_t* rows, const T* factors,
                            int64_t count, int64_t known, T* sum, double* total);
// That of the machine's target, for float or double.
template <class T>
SumRows<T> sum_rows();

}  // namespace treadle::simd
