// QR of few columns: a step reads the columns once. It reflects the columns on the right, and sums
// up the products that the next step needs (Golub & Van Loan, "Matrix Computations", 4th edition,
// 5.1.3 and 5.2.1).
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "aten/ops/linalg/cpu/householder.h"
#include "aten/ops/linalg/cpu/linalg.h"

namespace treadle::cpu {
namespace {

using Sums = std::array<double, simd::kMostColumns>;

// f(begin, end, sums) for pieces of the rows [first, rows). The result is the total of the sums, in
// the order of the pieces.
template <class F>
Sums over_pieces(int64_t first, int64_t rows, F&& f) {
  constexpr int64_t kPiece = 4096;
  Sums total{};
  if (rows <= kPiece) {
    if (first < rows) f(first, rows, total.data());
    return total;
  }
  const int64_t length = piece_length(rows, kPiece);
  std::vector<Sums> sums(static_cast<size_t>((rows + length - 1) / length));
  parallel_chunks(static_cast<int64_t>(sums.size()), [&](int64_t piece) {
    const int64_t begin = std::max(first, piece * length),
                  end = std::min(rows, (piece + 1) * length);
    if (begin < end) f(begin, end, sums[piece].data());
  });
  for (const Sums& some : sums) {
    for (size_t c = 0; c < total.size(); ++c) total[c] += some[c];
  }
  return total;
}

// A reflector: the tail of its vector is that of the column times `scale`.
struct Reflector {
  double beta, tau, scale;
};

// Of the column that begins with alpha and goes on with a tail whose sum of squares is given.
Reflector reflector(double alpha, double squares) {
  const double beta = -std::copysign(std::sqrt(alpha * alpha + squares), alpha);
  return {beta, (beta - alpha) / beta, 1 / (alpha - beta)};
}

// Whether squares and products of the numbers are far from the ends of the range of double, and
// scale is a normal number of T.
template <class T>
bool is_moderate(double alpha, const Sums& sums, const Reflector& r) {
  constexpr double kLeast = 1e-200, kMost = 1e200;
  for (const double sum : sums)
    if (!std::isfinite(sum)) return false;
  const T scale = static_cast<T>(r.scale);
  return sums[0] > kLeast && sums[0] < kMost && std::abs(alpha) < 1e100 && std::isnormal(scale);
}

// Where they are not: x, which begins with alpha, becomes the vector of the reflector, and is
// divided by its largest number first.
template <class T>
Reflector careful_reflector(T* x, int64_t length) {
  double most = 0, tail = 0;
  for (int64_t i = 0; i < length; ++i) {
    most = std::max(most, std::abs(static_cast<double>(x[i])));
    if (i > 0 && x[i] != T(0)) tail = 1;
  }
  const double alpha = static_cast<double>(x[0]);
  if (tail == 0) return {alpha, 0, 1};
  double squares = 0;
  for (int64_t i = 1; i < length; ++i) {
    const double part = static_cast<double>(x[i]) / most;
    squares += part * part;
  }
  const Reflector r = reflector(alpha / most, squares);
  for (int64_t i = 1; i < length; ++i)
    x[i] = static_cast<T>(static_cast<double>(x[i]) / most * r.scale);
  return {r.beta * most, r.tau, 1};
}

// `a` is stored by columns. load(begin, end) is called before rows are first read, and
// store(begin, end) after they were last written.
template <class T, class Load, class Store>
void factor(const Block<T>& a, T* tau, Load&& load, Store&& store) {
  const int64_t m = a.rows, n = a.columns, k = std::min(m, n), pitch = a.column_stride;
  const auto& loops = simd::column_loops<T>();
  const auto product = [&](int64_t j, int64_t c) {
    double sum = 0;
    for (int64_t i = j + 1; i < m; ++i)
      sum += static_cast<double>(a.at(i, j)) * static_cast<double>(a.at(i, c));
    return sum;
  };
  // The products of column j with those from the j-th on, below row j.
  Sums sums = over_pieces(0, m, [&](int64_t begin, int64_t end, double* some) {
    load(begin, end);
    begin = std::max<int64_t>(begin, 1);
    if (begin < end) loops.products(&a.at(begin, 0), pitch, n, end - begin, some);
  });
  for (int64_t j = 0; j < k; ++j) {
    const int64_t count = n - j;
    const double alpha = static_cast<double>(a.at(j, j));
    Reflector r = reflector(alpha, sums[0]);
    if (!is_moderate<T>(alpha, sums, r)) {
      r = careful_reflector(&a.at(j, j), m - j);
      for (int64_t c = 1; c < count; ++c) sums[c] = product(j, j + c);
    }
    tau[j] = static_cast<T>(r.tau);
    a.at(j, j) = static_cast<T>(r.beta);
    const T scale = static_cast<T>(r.scale);
    std::array<T, simd::kMostColumns> weights{};
    for (int64_t c = 1; c < count; ++c) {
      T& above = a.at(j, j + c);
      if (r.tau != 0)
        weights[c] = static_cast<T>(r.tau * (static_cast<double>(above) + sums[c] * r.scale));
      above -= weights[c];
    }
    // Row j + 1 is no term of the next products.
    if (j + 1 < m) {
      const T v = a.at(j + 1, j) *= scale;
      for (int64_t c = 1; c < count; ++c) a.at(j + 1, j + c) -= weights[c] * v;
    }
    const bool is_last = j + 1 == k;
    sums = over_pieces(is_last ? 0 : j + 2, m, [&](int64_t begin, int64_t end, double* some) {
      const int64_t first = std::max(begin, j + 2);
      if (first < end)
        loops.reflect(&a.at(first, j), pitch, count, end - first, scale, weights.data(), some);
      if (is_last) store(begin, end);
    });
  }
}

}  // namespace

template <class T>
void factor_columns(const Block<T>& a, T* tau) {
  const auto nothing = [](int64_t, int64_t) {};
  factor(a, tau, nothing, nothing);
}

template <class T>
void factor_narrow_rows(Block<const T> from, const Block<T>& to, T* tau) {
  const int64_t m = from.rows, n = from.columns;
  const WorkSpace<T> memory(m * n);
  const auto columns = rows_block(memory.data(), n, m, m).transposed();
  const auto& loops = simd::column_loops<T>();
  factor(
      columns, tau,
      [&](int64_t begin, int64_t end) {
        if (!loops.to_columns(&from.at(begin, 0), from.row_stride, n, end - begin,
                              &columns.at(begin, 0), m))
          transpose_copy(&from.at(begin, 0), end - begin, n, from.row_stride, &columns.at(begin, 0),
                         m);
      },
      [&](int64_t begin, int64_t end) {
        if (!loops.to_rows(&columns.at(begin, 0), m, n, end - begin, &to.at(begin, 0),
                           to.row_stride))
          transpose_copy(&columns.at(begin, 0), n, end - begin, m, &to.at(begin, 0), to.row_stride);
      });
}

#define TREADLE_INSTANTIATE(T)                       \
  template void factor_columns(const Block<T>&, T*); \
  template void factor_narrow_rows(Block<const T>, const Block<T>&, T*);

TREADLE_INSTANTIATE(float)
TREADLE_INSTANTIATE(double)
#undef TREADLE_INSTANTIATE

}  // namespace treadle::cpu
