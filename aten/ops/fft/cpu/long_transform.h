// The Fourier transform of one long slice, in parallel: as a matrix of n = rows x columns elements,
// whose columns are transformed, then its rows.
//
//   X[k1 + rows k2] = sum over n2 of root(n2 k1 / n) root(n2 k2 / columns)
//                                    (sum over n1 of root(n1 k1 / rows) x[columns n1 + n2])
//
// pocketfft transforms several columns or rows at once with vector instructions, so that this is
// quicker on one thread, too. To be included after pocketfft.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <complex>
#include <numbers>
#include <utility>
#include <vector>

#include "core/threads/parallel.h"

namespace treadle::cpu {

// exp(2 pi i k / n), k in [0, n); with a minus sign if `forward`. The angle is at most pi / 4.
inline std::complex<double> root_of_one(int64_t k, int64_t n, bool forward) {
  int64_t x = 8 * k;  // in parts of pi / 4 / n
  const bool below = x > 4 * n;
  if (below) x = 8 * n - x;
  const bool left = x > 2 * n;
  if (left) x = 4 * n - x;
  const bool steep = x > n;
  if (steep) x = 2 * n - x;
  const double angle = std::numbers::pi / 4 * static_cast<double>(x) / static_cast<double>(n);
  double c = std::cos(angle), s = std::sin(angle);
  if (steep) std::swap(c, s);
  return {left ? -c : c, below != forward ? -s : s};
}

inline std::complex<double> product(std::complex<double> a, std::complex<double> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// The roots of one, as products of those of two tables, so that few sines are computed.
class Roots {
 public:
  Roots(int64_t n, bool forward)
      : n_(n), fine_(kFine), coarse_(static_cast<size_t>(n / kFine + 1)) {
    for (int64_t k = 0; k < kFine; ++k)
      fine_[static_cast<size_t>(k)] = root_of_one(k % n, n, forward);
    for (size_t k = 0; k < coarse_.size(); ++k)
      coarse_[k] = root_of_one(static_cast<int64_t>(k) * kFine % n, n, forward);
  }
  int64_t count() const { return n_; }
  std::complex<double> operator[](int64_t k) const {
    return product(coarse_[static_cast<size_t>(k / kFine)], fine_[static_cast<size_t>(k % kFine)]);
  }

 private:
  static constexpr int64_t kFine = 1024;
  int64_t n_;
  std::vector<std::complex<double>> fine_, coarse_;
};

// roots[0], roots[step], roots[2 step], ..., one after the other.
class Steps {
 public:
  Steps(const Roots& roots, int64_t step, int64_t count)
      : fine_(kFine), coarse_(static_cast<size_t>(count / kFine + 1)) {
    for (int64_t k = 0; k < kFine; ++k)
      fine_[static_cast<size_t>(k)] = roots[k * step % roots.count()];
    for (size_t k = 0; k < coarse_.size(); ++k)
      coarse_[k] = roots[static_cast<int64_t>(k) * kFine * step % roots.count()];
  }
  // f(k, the root at k) for k in [begin, end).
  template <class F>
  void for_each(int64_t begin, int64_t end, F&& f) const {
    for (int64_t k = begin; k < end;) {
      const std::complex<double> far = coarse_[static_cast<size_t>(k / kFine)];
      const std::complex<double>* const near = fine_.data() - k / kFine * kFine;
      for (const int64_t last = std::min(end, (k / kFine + 1) * kFine); k < last; ++k)
        f(k, product(far, near[k]));
    }
  }

 private:
  static constexpr int64_t kFine = 64;
  std::vector<std::complex<double>> fine_, coarse_;
};

// Without the rules for infinities, which the operator of std::complex has.
template <class R>
std::complex<R> turned(std::complex<R> a, std::complex<double> root) {
  const R c = static_cast<R>(root.real()), s = static_cast<R>(root.imag());
  return {a.real() * c - a.imag() * s, a.real() * s + a.imag() * c};
}

// The rows of the matrix for n elements: 0 where n is short, or has no suitable divisor.
inline int64_t rows_of_long(int64_t n) {
  constexpr int64_t kLong = 1 << 17, kFewest = 16;
  if (n < kLong) return 0;
  int64_t rows = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % rows != 0) --rows;
  return rows < kFewest ? 0 : rows;
}

template <class R>
void transform_long(const std::complex<R>* from, std::complex<R>* to, int64_t n, bool forward,
                    double scale) {
  using C = std::complex<R>;
  constexpr int64_t kItem = sizeof(C), kLine = 16;
  const auto grain = [](int64_t length) {
    return (std::max<int64_t>(1, 32768 / length) + kLine - 1) / kLine * kLine;
  };
  const auto size = [](int64_t i) { return static_cast<size_t>(i); };
  const int64_t rows = rows_of_long(n), columns = n / rows;
  const Roots roots(n, forward);
  // Rows do not lie a power of two apart, where they would share few places in the cache.
  const int64_t pitch = columns + kLine;
  std::vector<C> matrix(size(rows * pitch));
  const pocketfft::stride_t given{columns * kItem, kItem}, own{pitch * kItem, kItem},
      across{kItem, rows * kItem};
  parallel_for(columns, grain(rows), [&](int64_t begin, int64_t end) {
    pocketfft::c2c({size(rows), size(end - begin)}, given, own, {0}, forward, from + begin,
                   matrix.data() + begin, static_cast<R>(scale));
  });
  parallel_for(rows, grain(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      C* const elements = matrix.data() + row * pitch;
      Steps(roots, row, columns).for_each(0, columns, [&](int64_t k, auto root) {
        elements[k] = turned(elements[k], root);
      });
    }
    pocketfft::c2c({size(end - begin), size(columns)}, own, across, {1}, forward,
                   matrix.data() + begin * pitch, to + begin, R(1));
  });
}

// Whether a real slice of n elements is transformed as half as many complex ones.
inline bool is_long_and_real(int64_t n) { return n % 2 == 0 && rows_of_long(n / 2) > 0; }

// z[k] = x[2 k] + i x[2 k + 1] has the transform E + i O of the even and the odd elements, and
// X[k] = E[k] + root(k) O[k].
template <class R>
void transform_long(const R* from, std::complex<R>* to, int64_t n, bool forward, double scale) {
  using C = std::complex<R>;
  const int64_t half = n / 2;
  std::vector<C> both(static_cast<size_t>(half));
  transform_long(reinterpret_cast<const C*>(from), both.data(), half, forward, scale);
  const C first = both[0];
  to[0] = {first.real() + first.imag(), R(0)};
  to[half] = {first.real() - first.imag(), R(0)};
  const Steps roots(Roots(n, forward), 1, half);
  parallel_for(half / 2, 16384, [&](int64_t begin, int64_t end) {
    roots.for_each(begin + 1, end + 1, [&](int64_t k, auto root) {
      const C a = both[static_cast<size_t>(k)], b = std::conj(both[static_cast<size_t>(half - k)]);
      const C even = (a + b) * R(0.5), difference = (a - b) * R(0.5);
      const C odd = turned(C{difference.imag(), -difference.real()}, root);
      to[k] = even + odd;
      to[half - k] = std::conj(even - odd);
    });
  });
}

// The inverse: the even and the odd elements are the real and the imaginary parts of the transform
// of E + i O.
template <class R>
void transform_long(const std::complex<R>* from, R* to, int64_t n, bool forward, double scale) {
  using C = std::complex<R>;
  const int64_t half = n / 2;
  std::vector<C> both(static_cast<size_t>(half));
  const R first = from[0].real(), last = from[half].real();
  both[0] = {first + last, first - last};
  const Steps roots(Roots(n, forward), 1, half);
  parallel_for(half / 2, 16384, [&](int64_t begin, int64_t end) {
    roots.for_each(begin + 1, end + 1, [&](int64_t k, auto root) {
      const C a = from[k], b = std::conj(from[half - k]);
      const C even = a + b, odd = turned(a - b, root);
      both[static_cast<size_t>(k)] = {even.real() - odd.imag(), even.imag() + odd.real()};
      both[static_cast<size_t>(half - k)] = {even.real() + odd.imag(), odd.real() - even.imag()};
    });
  });
  transform_long(both.data(), reinterpret_cast<C*>(to), half, forward, scale);
}

}  // namespace treadle::cpu
