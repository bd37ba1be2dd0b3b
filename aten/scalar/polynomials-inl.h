// Orthogonal polynomials of vectors: floats by the recurrences of special_polynomials.h in double,
// doubles lane by lane.
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_POLYNOMIALS_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_POLYNOMIALS_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_POLYNOMIALS_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_POLYNOMIALS_INL_H_
#endif

#include "aten/scalar/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// Numbers and degrees up to this need no scaling and no closed form.
inline constexpr float kPlainPolynomial = 64;

// The state after the steps of each lane from p(0) = 1 and p(1) = `p`. A step makes of p(k), and of
// another number that it needs, those of k + 1.
template <class V, class Step>
HWY_INLINE V recurrence_of_float(V x, V degree, V p, V other, Step step) {
  const V zero = set(0.0), whole = trunc(degree);
  const V n = where(whole <= set(double{kPlainPolynomial}), whole, zero);
  for (double k = 1;; k += 1) {
    const Mask<double> goes_on = n > V(set(k));
    if (all_lanes(goes_on)) {
      step(x, k, p, other);
      continue;
    }
    if (no_lanes(goes_on)) break;
    V next = p, next_other = other;
    step(x, k, next, next_other);
    p = where(goes_on, next, p);
    other = where(goes_on, next_other, other);
  }
  return where(n > zero, p, where(n == zero, V(set(1.0)), zero));
}
// `fast` of the lanes in whose range it is, else kSlow.
template <double (*kSlow)(double, double), class T, class Fast>
HWY_INLINE Vec<T> or_plain_lanes(Vec<T> x, Vec<T> n, Fast fast) {
  const Vec<T> most = set(T(kPlainPolynomial));
  const Mask<T> is_plain = logical_and(abs(x) <= most, n <= most);
  return fill_lanes(is_plain, through_double(fast, x, n), in_double2<kSlow, T>, x, n);
}

template <scalar::Chebyshev kKind, class V>
HWY_INLINE V chebyshev_of_float(V x, V n) {
  constexpr double kStart = kKind == scalar::Chebyshev::V ? -1 : kKind == scalar::Chebyshev::W;
  const V twice = x + x;
  const V second = kKind == scalar::Chebyshev::T ? x : twice + set(kStart);
  const auto step = [twice](V, double, V& p, V& before) HWY_ATTR {
    const V after = {hn::MulSub(twice.raw, p.raw, before.raw)};
    before = p;
    p = after;
  };
  return recurrence_of_float(x, n, second, V(set(1.0)), step);
}
template <scalar::Chebyshev kKind, class T>
HWY_INLINE Vec<T> chebyshev(Vec<T> x, Vec<T> n) {
  if constexpr (kThroughDouble<T>) {
    const auto fast = [](Vec<double> v, Vec<double> degree)
                          HWY_ATTR { return chebyshev_of_float<kKind>(v, degree); };
    return or_plain_lanes<scalar::chebyshev<kKind>>(x, n, fast);
  } else {
    return InDouble2<scalar::chebyshev<kKind>>()(x, n);
  }
}
template <scalar::Chebyshev kKind, class T>
HWY_INLINE Vec<T> shifted_chebyshev(Vec<T> x, Vec<T> n) {
  if constexpr (kThroughDouble<T>) {
    const auto fast = [](Vec<double> v, Vec<double> degree)
                          HWY_ATTR { return chebyshev_of_float<kKind>(v + v - set(1.0), degree); };
    return or_plain_lanes<scalar::shifted_chebyshev<kKind>>(x, n, fast);
  } else {
    return InDouble2<scalar::shifted_chebyshev<kKind>>()(x, n);
  }
}
template <class T>
HWY_INLINE Vec<T> chebyshev_t(Vec<T> x, Vec<T> n) {
  return chebyshev<scalar::Chebyshev::T>(x, n);
}
template <class T>
HWY_INLINE Vec<T> chebyshev_u(Vec<T> x, Vec<T> n) {
  return chebyshev<scalar::Chebyshev::U>(x, n);
}
template <class T>
HWY_INLINE Vec<T> chebyshev_v(Vec<T> x, Vec<T> n) {
  return chebyshev<scalar::Chebyshev::V>(x, n);
}
template <class T>
HWY_INLINE Vec<T> chebyshev_w(Vec<T> x, Vec<T> n) {
  return chebyshev<scalar::Chebyshev::W>(x, n);
}
template <class T>
HWY_INLINE Vec<T> shifted_chebyshev_t(Vec<T> x, Vec<T> n) {
  return shifted_chebyshev<scalar::Chebyshev::T>(x, n);
}
template <class T>
HWY_INLINE Vec<T> shifted_chebyshev_u(Vec<T> x, Vec<T> n) {
  return shifted_chebyshev<scalar::Chebyshev::U>(x, n);
}
template <class T>
HWY_INLINE Vec<T> shifted_chebyshev_v(Vec<T> x, Vec<T> n) {
  return shifted_chebyshev<scalar::Chebyshev::V>(x, n);
}
template <class T>
HWY_INLINE Vec<T> shifted_chebyshev_w(Vec<T> x, Vec<T> n) {
  return shifted_chebyshev<scalar::Chebyshev::W>(x, n);
}

// A step to factor * (x p(k) - k p(k - 1)).
template <class V>
HWY_INLINE void hermite_step(V x, double k, double factor, V& p, V& before) {
  const V after =
      set(factor) * V{hn::NegMulAdd(hn::Set(Tag<double>(), k), before.raw, (x * p).raw)};
  before = p;
  p = after;
}
template <class T>
HWY_INLINE Vec<T> hermite_h(Vec<T> x, Vec<T> n) {
  if constexpr (kThroughDouble<T>) {
    const auto fast = [](Vec<double> v, Vec<double> degree) HWY_ATTR {
      const auto step = [](Vec<double> u, double k, Vec<double>& p, Vec<double>& before)
                            HWY_ATTR { hermite_step(u, k, 2, p, before); };
      return recurrence_of_float(v, degree, v + v, set(1.0), step);
    };
    return or_plain_lanes<scalar::hermite_h>(x, n, fast);
  } else {
    return InDouble2<scalar::hermite_h>()(x, n);
  }
}
template <class T>
HWY_INLINE Vec<T> hermite_he(Vec<T> x, Vec<T> n) {
  if constexpr (kThroughDouble<T>) {
    const auto fast = [](Vec<double> v, Vec<double> degree) HWY_ATTR {
      const auto step = [](Vec<double> u, double k, Vec<double>& p, Vec<double>& before)
                            HWY_ATTR { hermite_step(u, k, 1, p, before); };
      return recurrence_of_float(v, degree, v, set(1.0), step);
    };
    return or_plain_lanes<scalar::hermite_he>(x, n, fast);
  } else {
    return InDouble2<scalar::hermite_he>()(x, n);
  }
}
// The other number is p(k) - p(k - 1), as that cancels less where the polynomial is flat.
template <class T>
HWY_INLINE Vec<T> laguerre_l(Vec<T> x, Vec<T> n) {
  if constexpr (kThroughDouble<T>) {
    const auto fast = [](Vec<double> v, Vec<double> degree) HWY_ATTR {
      const auto step = [](Vec<double> u, double k, Vec<double>& p, Vec<double>& difference)
                            HWY_ATTR {
                              const double inverse = 1 / (k + 1);
                              difference = set(k * inverse) * difference - u * set(inverse) * p;
                              p = p + difference;
                            };
      return recurrence_of_float(v, degree, set(1.0) - v, -v, step);
    };
    return or_plain_lanes<scalar::laguerre_l>(x, n, fast);
  } else {
    return InDouble2<scalar::laguerre_l>()(x, n);
  }
}
template <class T>
HWY_INLINE Vec<T> legendre_p(Vec<T> x, Vec<T> n) {
  if constexpr (kThroughDouble<T>) {
    const auto fast = [](Vec<double> v, Vec<double> degree) HWY_ATTR {
      const auto step = [](Vec<double> less_one, double k, Vec<double>& p,
                           Vec<double>& difference) HWY_ATTR {
        const double inverse = 1 / (k + 1);
        difference = set(k * inverse) * difference + less_one * set((2 * k + 1) * inverse) * p;
        p = p + difference;
      };
      const Vec<double> size = abs(v), less_one = size - set(1.0), half = trunc(degree) * set(0.5);
      const Vec<double> y = recurrence_of_float(less_one, degree, size, less_one, step);
      return where(logical_and(v < set(0.0), half != floor(half)), -y, y);
    };
    return or_plain_lanes<scalar::legendre_p>(x, n, fast);
  } else {
    return InDouble2<scalar::legendre_p>()(x, n);
  }
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
