// Cholesky's factors by halves, so that nearly all the work is in products of large blocks
// (Golub & Van Loan, "Matrix Computations", 4th edition, 4.2.7: Recursive Block Cholesky).
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/linalg/cpu/cholesky.h"

#include "aten/backend/cpu/lapack.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {

template <class T>
int cholesky_by_blocks(const Block<T>& a) {
  constexpr int64_t kLeaf = 64;
  const int64_t n = a.rows;
  if (n <= kLeaf) {
    int failed = 0;
    // Rows are the columns of the transposed matrix.
    single_threaded([&] {
      failed = lapack::potrf(a.by_rows() ? 'U' : 'L', static_cast<int>(n), a.data,
                             static_cast<int>(a.pitch()));
    });
    return failed;
  }
  const int64_t half = first_half(n), rest = n - half;
  const auto first = a.part(0, 0, half, half), last = a.part(half, half, rest, rest),
             below = a.part(half, 0, rest, half);
  if (const int failed = cholesky_by_blocks(first)) return failed;
  solve_triangle<T>(first, false, false, below.transposed());
  subtract_from_lower<T>(last, below, below.transposed());
  const int failed = cholesky_by_blocks(last);
  return failed ? failed + static_cast<int>(half) : 0;
}

template int cholesky_by_blocks(const Block<float>&);
template int cholesky_by_blocks(const Block<double>&);

}  // namespace treadle::cpu
