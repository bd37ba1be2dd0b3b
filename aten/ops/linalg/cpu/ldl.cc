// LDL factors with the pivots of Bunch and Kaufman (Golub & Van Loan, "Matrix Computations", 4th
// edition, 4.4.4). A panel of columns is factored from left to right, as LAPACK's lasyf does: a
// column is brought up to date when it is needed. Products then update what is on the right.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/linalg/cpu/ldl.h"

#include <cmath>

#include "aten/ops/linalg/cpu/linalg.h"

namespace treadle::cpu {
namespace {

// The position of the number of the largest size, and that size.
template <class T>
struct Largest {
  int64_t at;
  T size;
};
template <class T>
Largest<T> largest(const T* x, int64_t n) {
  constexpr int64_t kLanes = 16;
  T most[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) most[l] = std::max(most[l], std::abs(x[i + l]));
  }
  for (; i < n; ++i) most[0] = std::max(most[0], std::abs(x[i]));
  const T size = *std::max_element(most, most + kLanes);
  return {std::find_if(x, x + n, [&](T v) { return std::abs(v) >= size; }) - x, size};
}

template <class T>
class Panel {
 public:
  // `w` is stored by columns and gets L D of the panel's columns.
  Panel(const Block<T>& a, const Block<T>& w, int* pivots) : a_(a), w_(w), pivots_(pivots) {}

  // Factors as many columns as w has, or one less, and returns their number.
  int64_t factor() {
    const int64_t n = a_.rows, most = w_.columns;
    int64_t k = 0;
    while (k < n && (k + 1 < most || most == n)) k += step(k);
    return k;
  }
  int failed() const { return failed_; }

 private:
  // Column j of what is left of the matrix after k columns, as column `to` of w.
  void bring_up_to_date(int64_t j, int64_t k, int64_t to) {
    const int64_t n = a_.rows;
    for (int64_t i = k; i < j; ++i) w_.at(i, to) = a_.at(j, i);
    std::copy_n(&a_.at(j, j), n - j, &w_.at(j, to));
    if (k > 0)
      multiply<T>(w_.part(k, to, n - k, 1), T(-1), a_.part(k, 0, n - k, k),
                  w_.part(j, 0, 1, k).transposed(), T(1));
  }

  // The columns of the next block of D.
  int64_t step(int64_t k) {
    static const T kGrowth = static_cast<T>((1 + std::sqrt(17.0)) / 8);
    const int64_t n = a_.rows;
    bring_up_to_date(k, k, k);
    const T diagonal = std::abs(w_.at(k, k));
    Largest<T> below{0, T(0)};
    if (k + 1 < n) below = largest(&w_.at(k + 1, k), n - k - 1);
    int64_t pivot = k, size = 1;
    if (std::max(diagonal, below.size) == T(0)) {
      if (failed_ == 0) failed_ = static_cast<int>(k + 1);
      std::copy_n(&w_.at(k, k), n - k, &a_.at(k, k));
      pivots_[k] = static_cast<int>(k + 1);
      return 1;
    }
    if (diagonal < kGrowth * below.size) {
      const int64_t other = k + 1 + below.at;
      bring_up_to_date(other, k, k + 1);
      T beside = largest(&w_.at(k, k + 1), other - k).size;
      if (other + 1 < n)
        beside = std::max(beside, largest(&w_.at(other + 1, k + 1), n - other - 1).size);
      if (diagonal < kGrowth * below.size * (below.size / beside)) {
        pivot = other;
        if (std::abs(w_.at(other, k + 1)) >= kGrowth * beside)
          std::copy_n(&w_.at(k, k + 1), n - k, &w_.at(k, k));
        else
          size = 2;
      }
    }
    const int64_t last = k + size - 1;
    if (pivot != last) exchange(last, pivot, k);
    if (size == 1) {
      put_column(k);
      pivots_[k] = static_cast<int>(pivot + 1);
    } else {
      put_two_columns(k);
      pivots_[k] = pivots_[k + 1] = -static_cast<int>(pivot + 1);
    }
    return size;
  }

  // Exchanges rows and columns i < j. Column j is in w already.
  void exchange(int64_t i, int64_t j, int64_t k) {
    const int64_t n = a_.rows;
    a_.at(j, j) = a_.at(i, i);
    for (int64_t c = i + 1; c < j; ++c) a_.at(j, c) = a_.at(c, i);
    std::copy_n(&a_.at(j, i) + 1, n - j - 1, &a_.at(j, j) + 1);
    for (int64_t c = 0; c < k; ++c) std::swap(a_.at(i, c), a_.at(j, c));
    for (int64_t c = 0; c <= i; ++c) std::swap(w_.at(i, c), w_.at(j, c));
  }

  void put_column(int64_t k) {
    const T inverse = T(1) / w_.at(k, k);
    a_.at(k, k) = w_.at(k, k);
    for (int64_t i = k + 1; i < a_.rows; ++i) a_.at(i, k) = w_.at(i, k) * inverse;
  }
  // By the inverse of the 2 x 2 block, scaled so that nothing overflows.
  void put_two_columns(int64_t k) {
    const T off = w_.at(k + 1, k), d11 = w_.at(k + 1, k + 1) / off, d22 = w_.at(k, k) / off;
    const T factor = T(1) / (d11 * d22 - T(1)) / off;
    for (int64_t i = k + 2; i < a_.rows; ++i) {
      a_.at(i, k) = factor * (d11 * w_.at(i, k) - w_.at(i, k + 1));
      a_.at(i, k + 1) = factor * (d22 * w_.at(i, k + 1) - w_.at(i, k));
    }
    a_.at(k, k) = w_.at(k, k);
    a_.at(k + 1, k) = off;
    a_.at(k + 1, k + 1) = w_.at(k + 1, k + 1);
  }

  Block<T> a_, w_;
  int* pivots_;
  int failed_ = 0;
};

// LAPACK's L lacks the exchanges that came after a column.
template <class T>
void undo_exchanges(const Block<T>& a, const int* pivots, int64_t columns) {
  for (int64_t j = columns - 1; j > 0;) {
    const int64_t row = j, other = std::abs(pivots[j]) - 1;
    j -= pivots[row] < 0 ? 2 : 1;
    if (other == row) continue;
    for (int64_t c = 0; c <= j; ++c) std::swap(a.at(row, c), a.at(other, c));
  }
}

}  // namespace

template <class T>
int ldl_by_blocks(const Block<T>& a, int* pivots) {
  constexpr int64_t kColumns = 48;
  const int64_t n = a.rows;
  const WorkSpace<T> memory(n * std::min(n, kColumns));
  int failed = 0;
  for (int64_t j = 0; j < n;) {
    const int64_t rest = n - j;
    const auto mine = a.part(j, j, rest, rest);
    const Block<T> w = rows_block(memory.data(), std::min(rest, kColumns), rest, rest).transposed();
    Panel<T> panel(mine, w, pivots + j);
    const int64_t k = panel.factor(), after = rest - k;
    if (failed == 0 && panel.failed() != 0) failed = panel.failed() + static_cast<int>(j);
    subtract_from_lower<T>(mine.part(k, k, after, after), mine.part(k, 0, after, k),
                           w.part(k, 0, after, k).transposed());
    undo_exchanges(mine, pivots + j, k);
    for (int64_t i = j; i < j + k; ++i) pivots[i] += static_cast<int>(pivots[i] < 0 ? -j : j);
    j += k;
  }
  return failed;
}

template int ldl_by_blocks(const Block<float>&, int*);
template int ldl_by_blocks(const Block<double>&, int*);

}  // namespace treadle::cpu
