// Triangles by blocks: the solution of triangular systems, and products of which one triangle is
// needed (Golub & Van Loan, "Matrix Computations", 4th edition, 3.1.4 and 1.3.8).
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/linalg/cpu/blocks.h"

#include <algorithm>

#include "aten/backend/cpu/lapack.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

// A triangle that the cache holds, by LAPACK. Read by rows, a matrix of columns is transposed, and
// so is the system where `b` has columns.
template <class T>
void solve_small_triangle(Block<const T> a, bool upper, bool unit, const Block<T>& b) {
  const bool left = b.by_rows();
  const Block<T> rows = left ? b : b.transposed();
  lapack::trsm_rows(left, upper == a.by_rows(), left != a.by_rows(), unit,
                    static_cast<int>(rows.rows), static_cast<int>(rows.columns), a.data,
                    static_cast<int>(a.pitch()), rows.data, static_cast<int>(rows.pitch()));
}

}  // namespace

template <class T>
void subtract_from_lower(const Block<T>& c, Block<const T> a, Block<const T> b) {
  constexpr int64_t kTile = 192;
  const int64_t n = c.rows, side = (n + kTile - 1) / kTile;
  parallel_chunks(side * (side + 1) / 2, [&](int64_t chunk) {
    int64_t row = 0;  // of tiles: the first `row` rows have row (row + 1) / 2 of them
    while ((row + 1) * (row + 2) / 2 <= chunk) ++row;
    const int64_t i = row * kTile, j = (chunk - row * (row + 1) / 2) * kTile;
    const int64_t height = std::min(kTile, n - i), width = std::min(kTile, n - j);
    multiply<T>(c.part(i, j, height, width), T(-1), a.part(i, 0, height, a.columns),
                b.part(0, j, b.rows, width), T(1));
  });
}

template <class T>
void solve_triangle(Block<const T> a, bool upper, bool unit, const Block<T>& b) {
  constexpr int64_t kLeaf = 64, kSides = 128;
  const int64_t n = a.rows;
  if (n <= kLeaf) {
    parallel_for(b.columns, kSides, [&](int64_t begin, int64_t end) {
      single_threaded(
          [&] { solve_small_triangle<T>(a, upper, unit, b.part(0, begin, n, end - begin)); });
    });
    return;
  }
  const int64_t half = first_half(n), rest = n - half;
  const auto top = b.part(0, 0, half, b.columns), bottom = b.part(half, 0, rest, b.columns);
  const auto first = a.part(0, 0, half, half), last = a.part(half, half, rest, rest);
  if (upper) {
    solve_triangle<T>(last, upper, unit, bottom);
    multiply<T>(top, T(-1), a.part(0, half, half, rest), bottom, T(1));
    solve_triangle<T>(first, upper, unit, top);
  } else {
    solve_triangle<T>(first, upper, unit, top);
    multiply<T>(bottom, T(-1), a.part(half, 0, rest, half), top, T(1));
    solve_triangle<T>(last, upper, unit, bottom);
  }
}

template void subtract_from_lower(const Block<float>&, Block<const float>, Block<const float>);
template void subtract_from_lower(const Block<double>&, Block<const double>, Block<const double>);
template void solve_triangle(Block<const float>, bool, bool, const Block<float>&);
template void solve_triangle(Block<const double>, bool, bool, const Block<double>&);

}  // namespace treadle::cpu
