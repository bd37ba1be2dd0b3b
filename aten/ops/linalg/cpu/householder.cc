// QR in blocks of reflectors, of which products of matrices apply all at once (R. Schreiber and C.
// Van Loan, "A Storage-Efficient WY Representation for Products of Householder Transformations",
// 1989). A block is factored by halves of its columns (E. Elmroth and F. Gustavson, "Applying
// Recursion to Serial and Parallel QR Factorization", 2000).
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/linalg/cpu/householder.h"

#include <algorithm>

#include "aten/ops/linalg/cpu/linalg.h"

namespace treadle::cpu {
namespace {

// The diagonal and what is above it, as vectors of reflectors have it.
template <class T>
void set_unit_above(const Block<T>& v) {
  for (int64_t i = 0; i < std::min(v.rows, v.columns); ++i) {
    for (int64_t j = i; j < v.columns; ++j) v.at(i, j) = i == j ? T(1) : T(0);
  }
}

// c -= v (t w), where w is v^T c; or with t^T.
template <class T>
void reflect(Block<const T> v, Block<const T> t, bool transposed, const Block<T>& c, T* memory) {
  const int64_t k = v.columns, n = c.columns;
  if (n == 0) return;
  // As c is stored, so that no product goes across.
  const auto like_c = [&](T* data) {
    return c.by_rows() ? rows_block(data, k, n, n) : rows_block(data, n, k, k).transposed();
  };
  const Block<T> w = like_c(memory), tw = like_c(memory + k * n);
  multiply<T>(w, T(1), v.transposed(), c, T(0));
  multiply<T>(tw, T(1), transposed ? t.transposed() : t, w, T(0));
  multiply<T>(c, T(-1), v, tw, T(1));
}

// A multiple of the columns that are factored at once.
constexpr int64_t half_of_block(int64_t n) {
  constexpr int64_t kStep = simd::kMostColumns;
  return (n / 2 + kStep - 1) / kStep * kStep;
}

// The part of t that couples two halves of the reflectors, from the products of their vectors:
// -T1 (V1^T V2) T2. `memory` has room for as much.
template <class T>
void couple(const Block<T>& t, int64_t half, Block<const T> products, T* memory) {
  const int64_t rest = t.rows - half;
  const Block<T> above = t.part(0, half, half, rest), left = rows_block(memory, half, rest, rest);
  multiply<T>(left, T(1), t.part(0, 0, half, half), products, T(0));
  multiply<T>(above, T(-1), left, t.part(half, half, rest, rest), T(0));
  for (int64_t i = 0; i < rest; ++i) {
    for (int64_t j = 0; j < half; ++j) t.at(half + i, j) = T(0);
  }
}

// t from the products of all vectors. Few columns one by one: the j-th is -tau T (V^T v_j) above
// the diagonal.
template <class T>
void factor_of_products(const Block<T>& t, const T* tau, Block<const T> products, T* memory) {
  const int64_t n = t.rows;
  if (n > simd::kMostColumns) {
    const int64_t half = half_of_block(n), rest = n - half;
    factor_of_products<T>(t.part(0, 0, half, half), tau, products.part(0, 0, half, half), memory);
    factor_of_products<T>(t.part(half, half, rest, rest), tau + half,
                          products.part(half, half, rest, rest), memory);
    return couple<T>(t, half, products.part(0, half, half, rest), memory);
  }
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < j; ++i) {
      T sum(0);
      for (int64_t c = i; c < j; ++c) sum += t.at(i, c) * products.at(c, j);
      t.at(i, j) = -tau[j] * sum;
    }
    t.at(j, j) = tau[j];
    for (int64_t i = j + 1; i < n; ++i) t.at(i, j) = T(0);
  }
}
template <class T>
void factor_of_vectors(Block<const T> v, const T* tau, const Block<T>& t, T* memory) {
  const int64_t n = v.columns;
  const Block<T> products = rows_block(memory, n, n, n);
  multiply<T>(products, T(1), v.transposed(), v, T(0));
  factor_of_products<T>(t, tau, products, memory + n * n);
}

// p, stored by columns and not wider than high, becomes the vectors of its reflectors; r gets R.
template <class T>
void factor_block(const Block<T>& p, const Block<T>& r, T* tau, const Block<T>& t, T* memory) {
  const int64_t m = p.rows, n = p.columns;
  if (n <= simd::kMostColumns) {
    factor_columns(p, tau);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i; j < n; ++j) r.at(i, j) = p.at(i, j);
    }
    set_unit_above(p);
    return factor_of_vectors<T>(p, tau, t, memory);
  }
  const int64_t half = half_of_block(n), rest = n - half;
  const auto first = p.part(0, 0, m, half), second = p.part(0, half, m, rest);
  factor_block(first, r.part(0, 0, half, half), tau, t.part(0, 0, half, half), memory);
  reflect<T>(first, t.part(0, 0, half, half), true, second, memory);
  for (int64_t i = 0; i < half; ++i) {
    for (int64_t j = 0; j < rest; ++j) {
      r.at(i, half + j) = second.at(i, j);
      second.at(i, j) = T(0);
    }
  }
  factor_block(second.part(half, 0, m - half, rest), r.part(half, half, rest, rest), tau + half,
               t.part(half, half, rest, rest), memory);
  // The second half's vectors are zero where the first rows are.
  const int64_t below = m - half;
  const Block<T> products = rows_block(memory, half, rest, rest);
  multiply<T>(products, T(1), p.part(half, 0, below, half).transposed(),
              p.part(half, half, below, rest), T(0));
  couple<T>(t, half, products, memory + half * rest);
}

// The T of the block of n reflectors that begins with the j-th.
template <class F>
auto factor_at(F* factors, int64_t j, int64_t n) {
  return rows_block(factors + j * kReflectors, n, n, kReflectors);
}

// Calls f(first reflector, vectors, T) for each block of reflectors, in the order of the product
// or in reverse.
template <class T, class F>
void for_each_block(Block<const T> v, const T* factors, bool forward, F&& f) {
  const WorkSpace<T> memory(v.rows * std::min(kReflectors, v.columns));
  const int64_t count = (v.columns + kReflectors - 1) / kReflectors;
  for (int64_t b = 0; b < count; ++b) {
    const int64_t j = (forward ? b : count - 1 - b) * kReflectors,
                  n = std::min(kReflectors, v.columns - j);
    const Block<const T> from = v.part(j, j, v.rows - j, n);
    const Block<T> by_rows = v.by_rows() ? rows_block(memory.data(), from.rows, n, n)
                                         : rows_block(memory.data(), n, from.rows, from.rows),
                   vectors = v.by_rows() ? by_rows : by_rows.transposed();
    parallel_for(by_rows.rows, rows_of_copy(by_rows.columns), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        std::copy_n(from.data + i * from.pitch(), by_rows.columns, &by_rows.at(i, 0));
    });
    set_unit_above(vectors);
    f(j, vectors, factor_at(factors, j, n));
  }
}

}  // namespace

template <class T>
void factor_by_blocks(const Block<T>& a, T* tau, T* factors) {
  const int64_t m = a.rows, n = a.columns, k = std::min(m, n);
  constexpr int64_t kSquare = kReflectors * kReflectors;
  const WorkSpace<T> panel(m * kReflectors), upper(kSquare),
      memory(2 * kReflectors * std::max(n, kReflectors));
  for (int64_t j = 0; j < k; j += kReflectors) {
    const int64_t width = std::min(kReflectors, k - j), height = m - j;
    const auto mine = a.part(j, j, height, width);
    const Block<T> p = rows_block(panel.data(), width, height, height).transposed(),
                   r = rows_block(upper.data(), width, width, width);
    const auto t = factor_at(factors, j, width);
    transpose_copy(mine.data, height, width, mine.row_stride, p.data, height);
    factor_block(p, r, tau + j, t, memory.data());
    transpose_copy(p.data, width, height, height, mine.data, mine.row_stride);
    for (int64_t i = 0; i < width; ++i) std::copy_n(&r.at(i, i), width - i, &mine.at(i, i));
    reflect<T>(p, t, true, a.part(j, j + width, height, n - j - width), memory.data());
  }
}

template <class T>
void factor_rows(Block<const T> from, const Block<T>& to, T* tau) {
  if (is_narrow(from.rows, from.columns)) return factor_narrow_rows(from, to, tau);
  if (from.data != to.data) copy_values(from.data, from.rows * from.columns, to.data);
  const WorkSpace<T> factors(std::min(from.rows, from.columns) * kReflectors);
  factor_by_blocks(to, tau, factors.data());
}

template <class T>
void reflector_factors(Block<const T> v, const T* tau, T* factors) {
  const WorkSpace<T> memory(2 * kReflectors * kReflectors);
  for_each_block<T>(v, factors, true, [&](int64_t j, const Block<T>& vectors, auto) {
    factor_of_vectors<T>(vectors, tau + j, factor_at(factors, j, vectors.columns), memory.data());
  });
}

template <class T>
void apply_reflectors(Block<const T> v, const T* factors, bool transposed, const Block<T>& c) {
  const WorkSpace<T> memory(2 * kReflectors * c.columns);
  for_each_block<T>(
      v, factors, transposed, [&](int64_t j, const Block<T>& vectors, Block<const T> t) {
        reflect<T>(vectors, t, transposed, c.part(j, 0, c.rows - j, c.columns), memory.data());
      });
}

template <class T>
void first_columns_of_q(Block<const T> v, const T* factors, const Block<T>& q) {
  const int64_t m = q.rows, n = q.columns;
  for (int64_t i = 0; i < m; ++i) {
    std::fill_n(&q.at(i, 0), n, T(0));
    if (i >= v.columns && i < n) q.at(i, i) = T(1);
  }
  const WorkSpace<T> memory(2 * kReflectors * std::max(n, kReflectors));
  for_each_block<T>(v, factors, false, [&](int64_t j, const Block<T>& vectors, Block<const T> t) {
    const int64_t width = vectors.columns;
    reflect<T>(vectors, t, false, q.part(j, j + width, m - j, n - j - width), memory.data());
    // The columns of the block itself are still those of I.
    const Block<T> top = rows_block(memory.data(), width, width, width);
    multiply<T>(top, T(1), t, vectors.part(0, 0, width, width).transposed(), T(0));
    multiply<T>(q.part(j, j, m - j, width), T(-1), vectors, top, T(0));
    for (int64_t i = j; i < j + width; ++i) q.at(i, i) += T(1);
  });
}

#define TREADLE_INSTANTIATE(T)                                                     \
  template void factor_by_blocks(const Block<T>&, T*, T*);                         \
  template void factor_rows(Block<const T>, const Block<T>&, T*);                  \
  template void reflector_factors(Block<const T>, const T*, T*);                   \
  template void apply_reflectors(Block<const T>, const T*, bool, const Block<T>&); \
  template void first_columns_of_q(Block<const T>, const T*, const Block<T>&);

TREADLE_INSTANTIATE(float)
TREADLE_INSTANTIATE(double)
#undef TREADLE_INSTANTIATE

}  // namespace treadle::cpu
