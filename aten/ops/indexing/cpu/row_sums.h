// Sums of a few rows of a table, by vectors.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

// Rows of `width` elements in a table. Row i begins at table[i * stride].
template <class T>
struct RowTable {
  const T* table;
  int64_t stride, width;
};

// The sum of rows rows[0], ..., rows[count - 1], times their factors, added in this order. Null
// `factors` are ones. `sum` does not overlap the table. If `total` is not null, it is added to, and
// `sum` is not written. The rows up to rows[known - 1] are expected to be summed next.
template <class T>
using SumRows = void (*)(const RowTable<T>& of, const int64_t* rows, const T* factors,
                         int64_t count, int64_t known, T* sum, double* total);
// Bags of rows: those of bag b are rows[bounds[b]], ..., rows[bounds[b + 1] - 1].
template <class T>
struct BagsOfRows {
  const int64_t *rows, *bounds;
  const T* factors;  // of the rows; null: ones
  int64_t count;     // of all rows
  bool is_mean;      // whether sums are divided by the number of their rows
  bool is_far;       // whether the table is larger than the caches that are near
};

// sums[(b - begin) * width] = the sum or mean of bag b of [begin, end), in the order of SumRows.
// Left out are bags of more rows than cpu::kSumRun, which need a wider type.
template <class T>
using SumBags = void (*)(const RowTable<T>& of, const BagsOfRows<T>& bags, int64_t begin,
                         int64_t end, T* sums);

// Those of the machine's target, for float or double.
template <class T>
SumRows<T> sum_rows();
template <class T>
SumBags<T> sum_bags();

}  // namespace treadle::simd
