// The derivatives of gamma and beta numbers by the buffer. The loops are compiled once per target.
//
// A lane takes a fixed number of steps, so that its result does not depend on the others, and the
// steps have no division: series and fractions are carried as numerator and denominator. Lanes for
// which the steps are too few go one by one (gamma_slopes.h).
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/random/cpu/slope_blocks.cc"
#include "aten/ops/random/cpu/slope_blocks.h"

#include <algorithm>

#include "aten/backend/cpu/foreach_target.h"

#include "aten/ops/random/gamma_slopes.h"
#include "aten/scalar/gamma-inl.h"

// ---- once per target ----
HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

using Doubles = Vec<double>;

// a * b + c
HWY_INLINE Doubles fused(Doubles a, Doubles b, Doubles c) {
  return {hn::MulAdd(a.raw, b.raw, c.raw)};
}

// With F(a, z) = z^a e^-z N / gamma(end), N the numerator of the series, the derivative of z by a
// is -(dF / da) / (dF / dz) = (z / a) (N (digamma(end) - log z) - dN / da) / D.
HWY_INLINE Doubles gamma_slope_of_float(Doubles a, Doubles z) {
  const GammaSeries series = gamma_series<true>(a, z);
  const Doubles inverse = set(1.0) / series.end, square = inverse * inverse;
  const Doubles rest =
      square * (set(1.0 / 12) - square * (set(1.0 / 120) - square * set(1.0 / 252)));
  const Doubles gap = log(series.end / z) - set(0.5) * inverse - rest;
  return (series.numerator * gap - series.slope) * (z / (a * series.denominator));
}
void gamma_slopes(const float* shape, const float* number, int64_t count, float* out) {
  constexpr int64_t kLanes = Vec<float>::kLanes;
  const auto slow = [](float a, float z) {
    return static_cast<float>(gamma_slope(static_cast<double>(a), static_cast<double>(z)));
  };
  const auto fast = [](Doubles a, Doubles z) HWY_ATTR { return gamma_slope_of_float(a, z); };
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t n = std::min(kLanes, count - i);
    const Vec<float> a = load_lanes(shape + i, n), z = load_lanes(number + i, n);
    const Vec<float> y = through_double(fast, a, z);
    store_lanes(fill_lanes(in_gamma_series(a, z, 0.01f, 10.0f), y, slow, a, z), out + i, n);
  }
}

// A value and its derivative by a parameter.
struct Sloped {
  Doubles value, slope;
};
HWY_INLINE Sloped operator*(Sloped x, Sloped y) {
  return {x.value * y.value, fused(x.slope, y.value, x.value * y.slope)};
}
HWY_INLINE Sloped operator*(Sloped x, Doubles y) { return {x.value * y, x.slope * y}; }
HWY_INLINE Sloped operator+(Sloped x, Sloped y) { return {x.value + y.value, x.slope + y.slope}; }
HWY_INLINE Sloped operator+(Sloped x, double y) { return {x.value + set(y), x.slope}; }

// The convergent of slopes::beta_fraction after kBetaSteps terms. With a term n / d times the
// denominator d of the one before it, there is no division.
constexpr int kBetaSteps = 36;
HWY_INLINE Sloped beta_fraction_of_float(Doubles x, Sloped a, Sloped b) {
  const Doubles zero = set(0.0), one = set(1.0);
  Sloped above_before = {zero, zero}, above = {one, zero}, below_before = above, below = above;
  Sloped denominator = above;
  const auto step = [&](Sloped numerator, Sloped next) HWY_ATTR {
    const Sloped factor = numerator * denominator;
    const Sloped above_next = next * above + factor * above_before;
    const Sloped below_next = next * below + factor * below_before;
    above_before = above;
    above = above_next;
    below_before = below;
    below = below_next;
    denominator = next;
  };
  const Sloped both = a + b;
  for (int k = 0; k < kBetaSteps / 2; ++k) {
    const double m = k;
    const Sloped even = a + 2 * m;
    step((a + m) * (both + m) * -x, even * (even + 1));
    step((b + -(m + 1)) * (x * set(m + 1)), (even + 1) * (even + 2));
  }
  const Doubles inverse = one / below.value, value = above.value * inverse;
  return {value, (above.slope - value * below.slope) * inverse};
}
HWY_INLINE Doubles beta_slope_of_float(Doubles x, Doubles a, Doubles total) {
  const Doubles zero = set(0.0), one = set(1.0), b = total - a;
  const Mask<double> lower = x < (a + one) / (total + set(2.0));
  const Doubles by_a = where(lower, one, zero), by_b = one - by_a;
  const Sloped first = {where(lower, a, b), by_a}, second = {where(lower, b, a), by_b};
  const Sloped fraction = beta_fraction_of_float(where(lower, x, one - x), first, second);
  const Doubles gap = log_of_float(x) - digamma_of_float(a + by_a) + digamma_of_float(total);
  const Doubles scale = where(lower, -x, x) / first.value;
  return scale * fused(gap, fraction.value, fraction.slope);
}
void beta_slopes(const float* place, const float* shape, const float* total, int64_t count,
                 float* out) {
  constexpr int64_t kLanes = Vec<float>::kLanes;
  const auto slow = [](float x, float a, float sum) {
    const double alpha = static_cast<double>(a), rest = static_cast<double>(sum) - alpha;
    return static_cast<float>(beta_slope(static_cast<double>(x), alpha, rest));
  };
  const auto fast = [](Doubles x, Doubles a, Doubles sum)
                        HWY_ATTR { return beta_slope_of_float(x, a, sum); };
  const Vec<float> least = set(0.01f), most = set(24.0f), zero = set(0.0f), one = set(1.0f);
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t n = std::min(kLanes, count - i);
    const Vec<float> x = load_lanes(place + i, n), a = load_lanes(shape + i, n),
                     sum = load_lanes(total + i, n), b = sum - a;
    const Mask<float> shapes =
        logical_and(logical_and(a >= least, a <= most), logical_and(b >= least, b <= most));
    const Mask<float> is_inside = logical_and(shapes, logical_and(x > zero, x < one));
    const Vec<float> y = through_double(fast, x, a, sum);
    store_lanes(fill_lanes(is_inside, y, slow, x, a, sum), out + i, n);
  }
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(gamma_slopes);
HWY_EXPORT(beta_slopes);

void gamma_slopes(const float* shape, const float* number, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(gamma_slopes)(shape, number, count, out);
}
void beta_slopes(const float* place, const float* shape, const float* total, int64_t count,
                 float* out) {
  HWY_DYNAMIC_DISPATCH(beta_slopes)(place, shape, total, count, out);
}

}  // namespace treadle::simd
#endif  // HWY_ONCE
