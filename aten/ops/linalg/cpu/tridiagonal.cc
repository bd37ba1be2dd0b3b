// The reduction to tridiagonal form by panels, as LAPACK's sytrd and latrd do it (Golub & Van Loan,
// "Matrix Computations", 4th edition, 8.3.1). Half of the work is a product with the symmetric
// matrix for each column, and the other half is in products of blocks.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/linalg/cpu/tridiagonal.h"

#include <cmath>

#include "aten/ops/linalg/cpu/householder.h"
#include "aten/ops/linalg/cpu/linalg.h"

namespace treadle::cpu {
namespace {

// Products of the symmetric matrix in the lower triangle of `a` with vectors. The columns are cut
// into pieces of the same area, each with sums of its own, which are added in their order.
template <class T>
class SymmetricProduct {
 public:
  explicit SymmetricProduct(int64_t rows) : sums_(kMostPieces * rows) {}

  void operator()(const Block<T>& a, const T* x, T* y) const {
    constexpr int64_t kArea = 65536;
    const int64_t n = a.rows, pieces = std::clamp<int64_t>(n * n / 2 / kArea, 1, kMostPieces);
    const auto begin = [&](int64_t piece) {
      if (piece == pieces) return n;
      const double after = 1 - static_cast<double>(piece) / static_cast<double>(pieces);
      return static_cast<int64_t>(static_cast<double>(n) * (1 - std::sqrt(after))) / 4 * 4;
    };
    const auto& loops = simd::column_loops<T>();
    parallel_chunks(pieces, [&](int64_t piece) {
      T* const sums = piece == 0 ? y : sums_.data() + piece * n;
      const int64_t first = begin(piece);
      std::fill(sums + first, sums + n, T(0));
      loops.multiply_symmetric(a.data, a.column_stride, n, first, begin(piece + 1), x, sums);
    });
    for (int64_t piece = 1; piece < pieces; ++piece) {
      const T* const sums = sums_.data() + piece * n;
      for (int64_t i = begin(piece); i < n; ++i) y[i] += sums[i];
    }
  }

 private:
  static constexpr int64_t kMostPieces = 8;
  WorkSpace<T> sums_;
};

template <class T>
T product(const T* x, const T* y, int64_t n) {
  T result(0);
  multiply<T>(rows_block(&result, 1, 1, 1), T(1), rows_block(x, 1, n, n), rows_block(y, n, 1, 1),
              T(0));
  return result;
}

}  // namespace

template <class T>
void tridiagonal_by_blocks(const Block<T>& a, T* diagonal, T* beside, T* tau) {
  constexpr int64_t kColumns = 32;
  const int64_t n = a.rows;
  const SymmetricProduct<T> symmetric(n);
  // The matrix still lacks V W^T + W V^T: columns v0, w0, v1, w1, ..., and w0, v0, w1, v1, ...
  const WorkSpace<T> pairs(2 * kColumns * n), exchanged(2 * kColumns * n);
  for (int64_t j = 0; j < n; j += kColumns) {
    const int64_t m = n - j, width = std::min(kColumns, m);
    const auto mine = a.part(j, j, m, m);
    const Block<T> vw = rows_block(pairs.data(), 2 * width, m, m).transposed(),
                   wv = rows_block(exchanged.data(), 2 * width, m, m).transposed();
    for (int64_t i = 0; i < width; ++i) {
      const int64_t below = m - i - 1;
      multiply<T>(mine.part(i, i, m - i, 1), T(-1), vw.part(i, 0, m - i, 2 * i),
                  wv.part(i, 0, 1, 2 * i).transposed(), T(1));
      diagonal[j + i] = mine.at(i, i);
      if (below == 0) break;
      const auto column = mine.part(i + 1, i, below, 1);
      T* const scale = tau + j + i;
      factor_columns(column, scale);
      beside[j + i] = column.at(0, 0);

      T* const v = &vw.at(i + 1, 2 * i);
      T* const w = &vw.at(i + 1, 2 * i + 1);
      std::copy_n(column.data, below, v);
      v[0] = T(1);
      symmetric(mine.part(i + 1, i + 1, below, below), v, w);
      T factors[2 * kColumns];
      const Block<T> side = rows_block(factors, 2 * i, 1, 1),
                     as_column = rows_block(w, below, 1, 1);
      multiply<T>(side, T(1), wv.part(i + 1, 0, below, 2 * i).transposed(),
                  rows_block<const T>(v, below, 1, 1), T(0));
      multiply<T>(as_column, T(-1), vw.part(i + 1, 0, below, 2 * i), side, T(1));
      for (int64_t r = 0; r < below; ++r) w[r] *= *scale;
      const T along = T(-0.5) * *scale * product<T>(w, v, below);
      for (int64_t r = 0; r < below; ++r) w[r] += along * v[r];
      std::copy_n(w, below, &wv.at(i + 1, 2 * i));
      std::copy_n(v, below, &wv.at(i + 1, 2 * i + 1));
    }
    const int64_t rest = m - width;
    if (rest == 0) break;
    subtract_from_lower<T>(mine.part(width, width, rest, rest), vw.part(width, 0, rest, 2 * width),
                           wv.part(width, 0, rest, 2 * width).transposed());
  }
}

template void tridiagonal_by_blocks(const Block<float>&, float*, float*, float*);
template void tridiagonal_by_blocks(const Block<double>&, double*, double*, double*);

}  // namespace treadle::cpu
