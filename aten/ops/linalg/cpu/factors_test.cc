// Factors by blocks against their definitions, for sizes around those of the blocks, and the bits
// of each at several numbers of threads.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "aten/ops/linalg/cpu/cholesky.h"
#include "aten/ops/linalg/cpu/householder.h"
#include "aten/ops/linalg/cpu/ldl.h"
#include "aten/ops/linalg/cpu/lu.h"
#include "aten/ops/linalg/cpu/tridiagonal.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

// A matrix stored by rows.
template <class T>
struct Matrix {
  int64_t rows, columns;
  std::vector<T> values;
  Matrix(int64_t m, int64_t n) : rows(m), columns(n), values(static_cast<size_t>(m * n), T(0)) {}
  Block<T> block() { return rows_block(values.data(), rows, columns, columns); }
  Block<const T> block() const { return rows_block(values.data(), rows, columns, columns); }
  T& at(int64_t i, int64_t j) { return values[static_cast<size_t>(i * columns + j)]; }
  T at(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * columns + j)]; }
  bool operator==(const Matrix& other) const { return values == other.values; }
};

template <class T>
Matrix<T> random_matrix(int64_t m, int64_t n, double scale = 1) {
  std::mt19937 bits(static_cast<unsigned>(m * 1000 + n));
  std::normal_distribution<double> normal;
  Matrix<T> a(m, n);
  for (T& x : a.values) x = static_cast<T>(normal(bits) * scale);
  return a;
}

template <class T>
Matrix<T> identity(int64_t m, int64_t n) {
  Matrix<T> a(m, n);
  for (int64_t i = 0; i < std::min(m, n); ++i) a.at(i, i) = T(1);
  return a;
}

// Elements (i, j) of `from` for which keeps(i, j), and zeros.
template <class T, class F>
Matrix<double> some(const Matrix<T>& from, int64_t m, int64_t n, F keeps) {
  Matrix<double> a(m, n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j)
      if (keeps(i, j)) a.at(i, j) = static_cast<double>(from.at(i, j));
  }
  return a;
}
template <class T>
Matrix<double> upper(const Matrix<T>& from, int64_t m, int64_t n) {
  return some(from, m, n, [](int64_t i, int64_t j) { return i <= j; });
}
template <class T>
Matrix<double> unit_lower(const Matrix<T>& from, int64_t m, int64_t n) {
  Matrix<double> a = some(from, m, n, [](int64_t i, int64_t j) { return i > j; });
  for (int64_t i = 0; i < std::min(m, n); ++i) a.at(i, i) = 1;
  return a;
}
template <class T>
Matrix<double> whole(const Matrix<T>& from) {
  return some(from, from.rows, from.columns, [](int64_t, int64_t) { return true; });
}

Matrix<double> product(const Matrix<double>& a, const Matrix<double>& b) {
  Matrix<double> c(a.rows, b.columns);
  multiply<double>(c.block(), 1, a.block(), b.block(), 0);
  return c;
}
Matrix<double> transposed(const Matrix<double>& a) {
  Matrix<double> t(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) t.at(j, i) = a.at(i, j);
  }
  return t;
}

// The largest difference, in roundings of numbers near `scale` whose sums have n terms.
template <class T>
double error(const Matrix<double>& a, const Matrix<double>& b, int64_t n, double scale = 1) {
  double most = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const double off = std::abs(a.values[i] - b.values[i]);
    if (!(off <= most)) most = off;
  }
  return most / scale / std::numeric_limits<T>::epsilon() / std::sqrt(static_cast<double>(n + 1));
}

// Runs f() at several numbers of threads; its results must be equal.
template <class F>
auto at_any_threads(F f) {
  const int before = num_threads();
  set_num_threads(1);
  const auto result = f();
  for (const int threads : {2, 3, 8}) {
    set_num_threads(threads);
    EXPECT_TRUE(f() == result) << threads << " threads";
  }
  set_num_threads(before);
  return result;
}

template <class T>
class Factors : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(Factors, Reals);

TYPED_TEST(Factors, Cholesky) {
  using T = TypeParam;
  for (const int64_t n : {1, 2, 63, 64, 65, 128, 130, 193, 257, 500}) {
    const Matrix<double> g = whole(random_matrix<T>(n, n));
    Matrix<double> wide = product(g, transposed(g));
    Matrix<T> a(n, n);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j)
        a.at(i, j) = static_cast<T>(wide.at(i, j) / static_cast<double>(n) + (i == j));
    }
    for (const bool by_rows : {true, false}) {
      const Matrix<T> l = at_any_threads([&] {
        Matrix<T> factor = a;
        const Block<T> block = factor.block();
        EXPECT_EQ(cholesky_by_blocks(by_rows ? block : block.transposed()), 0);
        return factor;
      });
      Matrix<double> u = upper(l, n, n);
      if (by_rows) u = transposed(some(l, n, n, [](int64_t i, int64_t j) { return i >= j; }));
      EXPECT_LT(error<T>(product(transposed(u), u), whole(a), n), 4) << n;
    }
    // A minor that is not positive.
    Matrix<T> broken = a;
    broken.at(n - 1, n - 1) = T(-1);
    EXPECT_EQ(cholesky_by_blocks(broken.block()), n);
    broken.at(0, 0) = T(0);
    EXPECT_EQ(cholesky_by_blocks(broken.block()), 1);
  }
}

TYPED_TEST(Factors, Lu) {
  using T = TypeParam;
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{1, 1},     {32, 32},   {33, 33},
                                                          {64, 65},   {65, 64},   {130, 130},
                                                          {100, 300}, {300, 100}, {517, 517}};
  for (const auto& [m, n] : sizes) {
    const int64_t k = std::min(m, n);
    const Matrix<T> a = random_matrix<T>(m, n);
    std::vector<int> pivots(static_cast<size_t>(k));
    const Matrix<T> lu = at_any_threads([&] {
      Matrix<T> factors = a;
      EXPECT_EQ(lu_by_blocks(factors.block(), pivots.data()), 0);
      return factors;
    });
    Matrix<T> permuted = a;
    exchange_rows(permuted.block(), pivots.data(), k);
    const Matrix<double> l = unit_lower(lu, m, k);
    for (const double x : l.values) EXPECT_LE(std::abs(x), 1);
    EXPECT_LT(error<T>(product(l, upper(lu, k, n)), whole(permuted), k, 10), 4) << m << " " << n;

    // The first zero on the diagonal of U.
    Matrix<T> singular = a;
    for (int64_t i = 0; i < m; ++i) singular.at(i, k / 2) = T(0);
    EXPECT_EQ(lu_by_blocks(singular.block(), pivots.data()), k / 2 + 1);
  }
}

// The matrix whose factors LAPACK's sytrf describes so: for each block of D, from the last to the
// first, the rows and columns of a pivot are exchanged, and the column of L is added.
template <class T>
Matrix<double> of_ldl(const Matrix<T>& columns, const std::vector<int>& pivots) {
  const int64_t n = columns.rows;
  Matrix<double> l(n, n), d(n, n);
  l = identity<double>(n, n);
  for (int64_t k = n - 1; k >= 0;) {
    const int64_t first = pivots[static_cast<size_t>(k)] < 0 ? k - 1 : k;
    // L = P (I + column) L
    for (int64_t j = first; j <= k; ++j) {
      for (int64_t i = j; i <= k; ++i)
        d.at(i, j) = d.at(j, i) = static_cast<double>(columns.at(j, i));
    }
    Matrix<double> step = identity<double>(n, n);
    for (int64_t j = first; j <= k; ++j) {
      for (int64_t i = k + 1; i < n; ++i) step.at(i, j) = static_cast<double>(columns.at(j, i));
    }
    l = product(step, l);
    const int64_t other = std::abs(pivots[static_cast<size_t>(k)]) - 1;
    for (int64_t j = 0; j < n; ++j) std::swap(l.at(k, j), l.at(other, j));
    k = first - 1;
  }
  return product(product(l, d), transposed(l));
}

TYPED_TEST(Factors, Ldl) {
  using T = TypeParam;
  for (const int64_t n : {1, 2, 3, 47, 48, 49, 50, 95, 97, 160}) {
    const Matrix<T> g = random_matrix<T>(n, n);
    // Symmetric. Without a diagonal, D has blocks of 2 x 2 only. With a large one, it has none.
    for (const int diagonal : {0, 1, 100}) {
      Matrix<T> a(n, n);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j)
          a.at(i, j) = i == j ? static_cast<T>(diagonal) * g.at(i, i) : g.at(i, j) + g.at(j, i);
      }
      std::vector<int> pivots(static_cast<size_t>(n));
      const bool is_zero = n == 1 && diagonal == 0;
      const Matrix<T> ldl = at_any_threads([&] {
        Matrix<T> factors = a;
        EXPECT_EQ(ldl_by_blocks(factors.block().transposed(), pivots.data()), is_zero ? 1 : 0);
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < i; ++j) factors.at(i, j) = T(0);
        }
        return factors;
      });
      EXPECT_LT(error<T>(of_ldl(ldl, pivots), whole(a), n, 10 * (1 + diagonal)), 8)
          << n << " " << diagonal;
    }
  }
  // The first zero of D.
  Matrix<T> a(100, 100);
  for (int64_t i = 0; i < 100; ++i) a.at(i, i) = T(i < 70 ? 100 - i : 0);
  std::vector<int> pivots(100);
  EXPECT_EQ(ldl_by_blocks(a.block().transposed(), pivots.data()), 71);
}

TYPED_TEST(Factors, Triangle) {
  using T = TypeParam;
  for (const int64_t n : {1, 64, 65, 129, 300}) {
    for (const int64_t sides : {1, 3, 128, 200}) {
      Matrix<T> a = random_matrix<T>(n, n, 1 / static_cast<double>(n));
      for (int64_t i = 0; i < n; ++i) a.at(i, i) = T(2);
      const Matrix<T> b = random_matrix<T>(n, sides);
      for (int way = 0; way < 8; ++way) {
        const bool is_upper = way & 1, unit = way & 2, by_rows = way & 4;
        // x^T by rows, if x is by columns.
        const Matrix<T> x = at_any_threads([&] {
          Matrix<T> side = by_rows ? b : Matrix<T>(sides, n);
          const Block<T> block = by_rows ? side.block() : side.block().transposed();
          for (int64_t i = 0; i < n; ++i) {
            for (int64_t j = 0; j < sides; ++j) block.at(i, j) = b.at(i, j);
          }
          // The lower triangle of a^T is the upper one of a.
          const Block<T> triangle = is_upper ? a.block() : a.block().transposed();
          solve_triangle<T>(triangle, true, unit, block);
          return side;
        });
        Matrix<double> t =
            is_upper ? upper(a, n, n)
                     : transposed(some(a, n, n, [](int64_t i, int64_t j) { return i >= j; }));
        if (unit)
          for (int64_t i = 0; i < n; ++i) t.at(i, i) = 1;
        const Matrix<double> wide = by_rows ? whole(x) : transposed(whole(x));
        EXPECT_LT(error<T>(product(t, wide), whole(b), n), 8) << n << " " << sides << " " << way;
      }
    }
  }
}

TYPED_TEST(Factors, Qr) {
  using T = TypeParam;
  const std::vector<std::pair<int64_t, int64_t>> sizes = {
      {1, 1},    {9, 9},    {64, 64},   {65, 65},   {100, 9},
      {200, 17}, {70, 200}, {300, 129}, {257, 250}, {20000, 12}};
  for (const auto& [m, n] : sizes) {
    const int64_t k = std::min(m, n);
    const Matrix<T> a = random_matrix<T>(m, n);
    std::vector<T> tau(static_cast<size_t>(k)), factors(static_cast<size_t>(k * kReflectors)),
        again(factors.size());
    const Matrix<T> qr = at_any_threads([&] {
      Matrix<T> both = a;
      factor_by_blocks(both.block(), tau.data(), factors.data());
      return both;
    });
    const Block<const T> v = qr.block().part(0, 0, m, k);
    const Matrix<T> q = at_any_threads([&] {
      Matrix<T> columns(m, k);
      first_columns_of_q(v, factors.data(), columns.block());
      return columns;
    });
    const Matrix<double> wide = whole(q);
    EXPECT_LT(error<T>(product(wide, upper(qr, k, n)), whole(a), m, 2), 4) << m << " " << n;
    EXPECT_LT(error<T>(product(transposed(wide), wide), identity<double>(k, k), m), 4);

    reflector_factors(v, tau.data(), again.data());
    const Matrix<T> other = random_matrix<T>(m, 5);
    const Matrix<T> applied = at_any_threads([&] {
      Matrix<T> c = other;
      apply_reflectors(v, again.data(), true, c.block());
      return c;
    });
    const Matrix<double> all = product(transposed(wide), whole(other));
    EXPECT_LT(error<T>(some(applied, k, 5, [](int64_t, int64_t) { return true; }), all, m, 3), 4);
    Matrix<T> back = applied;
    apply_reflectors(v, again.data(), false, back.block());
    EXPECT_LT(error<T>(whole(back), whole(other), m, 3), 4);
    // By columns.
    Matrix<T> turned(5, m);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < 5; ++j) turned.at(j, i) = other.at(i, j);
    }
    apply_reflectors(v, again.data(), true, turned.block().transposed());
    EXPECT_LT(error<T>(transposed(whole(turned)), whole(applied), m, 3), 4);
  }
}

TYPED_TEST(Factors, Tridiagonal) {
  using T = TypeParam;
  for (const int64_t n : {2, 3, 31, 32, 33, 34, 64, 65, 100, 300}) {
    const Matrix<T> g = random_matrix<T>(n, n);
    Matrix<T> a(n, n);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) a.at(i, j) = g.at(i, j) + g.at(j, i);
    }
    std::vector<T> diagonal(static_cast<size_t>(n)), beside(diagonal), tau(diagonal);
    const Matrix<T> columns = at_any_threads([&] {
      Matrix<T> reduced = a;
      // The other triangle is not read.
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < i; ++j) reduced.at(i, j) = std::numeric_limits<T>::quiet_NaN();
      }
      tridiagonal_by_blocks(reduced.block().transposed(), diagonal.data(), beside.data(),
                            tau.data());
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < i; ++j) reduced.at(i, j) = T(0);
      }
      return reduced;
    });
    Matrix<double> t(n, n);
    for (int64_t i = 0; i < n; ++i) {
      t.at(i, i) = static_cast<double>(diagonal[static_cast<size_t>(i)]);
      if (i + 1 < n)
        t.at(i, i + 1) = t.at(i + 1, i) = static_cast<double>(beside[static_cast<size_t>(i)]);
    }
    std::vector<T> factors(static_cast<size_t>(n * kReflectors));
    const Block<const T> v = columns.block().transposed().part(1, 0, n - 1, n - 1);
    Matrix<T> q = identity<T>(n, n);
    reflector_factors(v, tau.data(), factors.data());
    apply_reflectors(v, factors.data(), false, q.block().part(1, 0, n - 1, n));
    const Matrix<double> wide = whole(q);
    EXPECT_LT(error<T>(product(product(wide, t), transposed(wide)), whole(a), n, 10), 4) << n;
  }
}

// Few columns, of numbers whose squares are out of range, too.
TYPED_TEST(Factors, NarrowQr) {
  using T = TypeParam;
  std::vector<double> scales = {1, 1e25, 1e-25};
  if (sizeof(T) == sizeof(double)) scales.insert(scales.end(), {1e200, 1e-200, 1e300, 1e-300});
  for (const int64_t m : {1, 2, 3, 8, 9, 300, 20001}) {
    for (int64_t n = 1; n <= simd::kMostColumns; ++n) {
      for (const double scale : scales) {
        const int64_t k = std::min(m, n);
        const Matrix<T> a = random_matrix<T>(m, n, scale);
        std::vector<T> tau(static_cast<size_t>(k)), factors(static_cast<size_t>(k * kReflectors));
        const Matrix<T> qr = at_any_threads([&] {
          Matrix<T> both(m, n);
          factor_narrow_rows<T>(a.block(), both.block(), tau.data());
          return both;
        });
        const Block<const T> v = qr.block().part(0, 0, m, k);
        Matrix<T> q(m, k);
        reflector_factors(v, tau.data(), factors.data());
        first_columns_of_q(v, factors.data(), q.block());
        const Matrix<double> wide = whole(q);
        EXPECT_LT(error<T>(product(wide, upper(qr, k, n)), whole(a), m, 2 * scale), 4)
            << m << " " << n << " " << scale;
        EXPECT_LT(error<T>(product(transposed(wide), wide), identity<double>(k, k), m), 4);
      }
    }
  }
}

// A column of zeros has the reflector that changes nothing, and NaN stays NaN.
TYPED_TEST(Factors, NarrowQrOfZerosAndNaN) {
  using T = TypeParam;
  Matrix<T> a = random_matrix<T>(500, 3), b = a;
  for (int64_t i = 0; i < a.rows; ++i) a.at(i, 0) = T(0);
  std::vector<T> tau(3);
  factor_narrow_rows<T>(a.block(), a.block(), tau.data());
  EXPECT_EQ(tau[0], T(0));
  EXPECT_EQ(a.at(0, 0), T(0));
  EXPECT_NE(tau[1], T(0));
  b.at(400, 1) = std::numeric_limits<T>::quiet_NaN();
  factor_narrow_rows<T>(b.block(), b.block(), tau.data());
  EXPECT_TRUE(std::isfinite(tau[0]));
  EXPECT_TRUE(std::isnan(tau[1]));
  EXPECT_TRUE(std::isnan(b.at(1, 1)));
}

}  // namespace
}  // namespace treadle::cpu
