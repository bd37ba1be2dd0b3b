// LU factors with exchanges of rows, by halves of the columns (S. Toledo, "Locality of Reference in
// LU Decomposition with Partial Pivoting", 1997; Golub & Van Loan, "Matrix Computations", 4th
// edition, 3.4.7). Few columns are factored by LAPACK.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/linalg/cpu/lu.h"

#include <algorithm>

#include "aten/ops/linalg/cpu/linalg.h"

namespace treadle::cpu {
namespace {

// Few columns by LAPACK, in `columns`, which has room for them.
template <class T>
int factor_columns(const Block<T>& a, int* pivots, T* columns) {
  const int m = static_cast<int>(a.rows), n = static_cast<int>(a.columns);
  int failed = 0;
  transpose_copy(a.data, a.rows, a.columns, a.row_stride, columns, a.rows);
  single_threaded([&] { failed = lapack::getrf(m, n, columns, m, pivots); });
  // The largest of numbers that are not finite may be nowhere, if sums overflowed.
  for (int i = 0; i < n; ++i)
    if (pivots[i] <= i || pivots[i] > m) pivots[i] = i + 1;
  transpose_copy(columns, a.columns, a.rows, a.rows, a.data, a.row_stride);
  return failed;
}

// `a` has at least as many rows as columns.
constexpr int64_t kLeaf = 32;
template <class T>
int factor(const Block<T>& a, int* pivots, T* memory) {
  const int64_t m = a.rows, n = a.columns;
  if (n <= kLeaf) return factor_columns(a, pivots, memory);
  const int64_t half = first_half(n), rest = n - half;
  const auto left = a.part(0, 0, m, half), right = a.part(0, half, m, rest);
  const auto above = right.part(0, 0, half, rest), below = right.part(half, 0, m - half, rest);
  const int first = factor(left, pivots, memory);
  exchange_rows(right, pivots, half);
  solve_triangle<T>(left.part(0, 0, half, half), false, true, above);
  multiply<T>(below, T(-1), left.part(half, 0, m - half, half), above, T(1));
  const int second = factor(below, pivots + half, memory);
  exchange_rows(left.part(half, 0, m - half, half), pivots + half, rest);
  for (int64_t i = half; i < n; ++i) pivots[i] += static_cast<int>(half);
  return first ? first : second ? second + static_cast<int>(half) : 0;
}

}  // namespace

template <class T>
void exchange_rows(const Block<T>& b, const int* pivots, int64_t count) {
  // Columns that stay in the cache from one exchange to the next, and are worth a thread.
  constexpr int64_t kStrip = 256, kWork = 65536;
  const int64_t strip = std::max(kStrip, kWork / std::max<int64_t>(1, count));
  parallel_for(b.columns, strip, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t other = pivots[i] - 1;
      if (other != i)
        std::swap_ranges(&b.at(i, begin), &b.at(i, begin) + (end - begin), &b.at(other, begin));
    }
  });
}

template <class T>
int lu_by_blocks(const Block<T>& a, int* pivots) {
  const int64_t m = a.rows, n = a.columns, k = std::min(m, n);
  const WorkSpace<T> columns(m * std::min(k, kLeaf));
  const auto left = a.part(0, 0, m, k), right = a.part(0, k, m, n - k);
  const int failed = factor(left, pivots, columns.data());
  if (n > k) {
    exchange_rows(right, pivots, k);
    solve_triangle<T>(left, false, true, right);
  }
  return failed;
}

template int lu_by_blocks(const Block<float>&, int*);
template int lu_by_blocks(const Block<double>&, int*);
template void exchange_rows(const Block<float>&, const int*, int64_t);
template void exchange_rows(const Block<double>&, const int*, int64_t);

}  // namespace treadle::cpu
