// Sums of any number of terms, with no more rounding error than sums of a few dozen terms.
//
//   wide_type<C> s = long_sum<C>(n, [&](int64_t i) { return x[i] * y[i]; });
//
// Terms of float are added in lanes, which the compiler vectorises, in runs of kSumRun terms per
// lane. Runs are added in double. The order of additions depends only on the number of terms.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <vector>

#include "core/base/scalar_type.h"

namespace treadle::cpu {

inline constexpr int64_t kSumLanes = 8;
inline constexpr int64_t kSumRun = 16;

// The type of the sums of many elements of T.
template <class T>
struct WideType {
  using type = T;
};
template <>
struct WideType<Half> {
  using type = double;
};
template <>
struct WideType<BFloat16> {
  using type = double;
};
template <>
struct WideType<float> {
  using type = double;
};
template <>
struct WideType<std::complex<float>> {
  using type = std::complex<double>;
};
template <class T>
using wide_type = typename WideType<T>::type;

// The sum of term(0), ..., term(n - 1), which have type C.
template <class C, class F>
inline wide_type<C> long_sum(int64_t n, F&& term) {
  using W = wide_type<C>;
  if (n <= kSumRun) {
    C sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += term(i);
    return static_cast<W>(sum);
  }
  W total[kSumLanes] = {};
  int64_t i = 0;
  for (constexpr int64_t kBlock = kSumLanes * kSumRun; i + kBlock <= n;) {
    C lanes[kSumLanes] = {};
    for (const int64_t end = i + kBlock; i < end; i += kSumLanes) {
      for (int64_t l = 0; l < kSumLanes; ++l) lanes[l] += term(i + l);
    }
    for (int64_t l = 0; l < kSumLanes; ++l) total[l] += static_cast<W>(lanes[l]);
  }
  C lanes[kSumLanes] = {};
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int64_t l = 0; l < kSumLanes; ++l) lanes[l] += term(i + l);
  }
  for (int64_t l = 0; i < n; ++i, ++l) lanes[l] += term(i);
  for (int64_t l = 0; l < kSumLanes; ++l) total[l] += static_cast<W>(lanes[l]);
  return ((total[0] + total[1]) + (total[2] + total[3])) +
         ((total[4] + total[5]) + (total[6] + total[7]));
}

// Rows of terms, added column by column:
//
//   ColumnSums<C> sums(width);
//   for (...) sums.add_row([&](C* sum) { for (int64_t k = 0; k < width; ++k) sum[k] += row[k]; });
//   sums.take([&](int64_t k, auto sum) { out[k] = sum; });    // and begins anew
//
// The sums have type C if there are few enough rows for C to hold all of them, else wide_type<C>.
template <class C>
class ColumnSums {
  using W = wide_type<C>;

 public:
  explicit ColumnSums(int64_t width) : run_(static_cast<size_t>(width), C(0)) {}

  template <class F>
  void add_row(F&& add) {
    if (rows_ == kSumRun) end_run();
    add(run_.data());
    ++rows_;
  }

  // The same sums of several rows. add(sums, first, count) adds some of them, in their order.
  template <class F>
  void add_rows(int64_t rows, F&& add) {
    for (int64_t first = 0; first < rows;) {
      if (rows_ == kSumRun) end_run();
      const int64_t count = std::min(rows - first, kSumRun - rows_);
      add(run_.data(), first, count);
      rows_ += count;
      first += count;
    }
  }

  template <class F>
  void take(F&& put) {
    take_all([&put, width = width()](const auto* sums) {
      for (int64_t k = 0; k < width; ++k) put(k, sums[k]);
    });
  }

  // The same with a pointer to all of them.
  template <class F>
  void take_all(F&& use) {
    if (many_) {
      end_run();
      use(static_cast<const W*>(total_.data()));
      std::fill(total_.begin(), total_.end(), W(0));
    } else {
      use(static_cast<const C*>(run_.data()));
      std::fill(run_.begin(), run_.end(), C(0));
    }
    rows_ = 0;
    many_ = false;
  }

 private:
  int64_t width() const { return static_cast<int64_t>(run_.size()); }
  void end_run() {
    if (total_.empty()) total_.assign(run_.size(), W(0));
    W* const total = total_.data();
    const C* const run = run_.data();
    for (int64_t k = 0; k < width(); ++k) total[k] += static_cast<W>(run[k]);
    std::fill(run_.begin(), run_.end(), C(0));
    rows_ = 0;
    many_ = true;
  }

  std::vector<C> run_;
  std::vector<W> total_;
  int64_t rows_ = 0;
  bool many_ = false;
};

// Whether elements of T receive so many additions, on average, that their sums need a wider type.
template <class T>
bool worth_wide_sums(int64_t terms, int64_t elements) {
  return !std::is_same_v<T, wide_type<T>> && terms / 4 >= elements;
}

// add(sums) adds to `count` elements of wide_type<T>, which start with the values of `out`. `out`
// receives the sums at the end.
template <class T, class F>
void with_wide_sums(T* out, int64_t count, F&& add) {
  using W = wide_type<T>;
  if constexpr (!std::is_same_v<T, W>) {
    std::vector<W> sums(out, out + count);
    add(sums.data());
    std::transform(sums.begin(), sums.end(), out,
                   [](W sum) { return static_cast<T>(static_cast<compute_type<T>>(sum)); });
  } else {
    add(out);
  }
}

}  // namespace treadle::cpu
