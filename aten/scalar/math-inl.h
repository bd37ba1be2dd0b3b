// Functions of vectors. Highway's functions are corrected here at infinities, NaN, the ends of
// their ranges and signed zeros. The others go lane by lane through the C library. docs/accuracy.md
// gives the accuracy of each; math_test.cc checks it on every target.
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_MATH_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_MATH_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_MATH_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_MATH_INL_H_
#endif

#include "aten/scalar/complex_math.h"
#include "aten/scalar/float_tables.h"
#include "aten/scalar/int_math.h"
#include "aten/scalar/scalar_math.h"
#include "aten/scalar/special-inl.h"
#include "aten/scalar/vec-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

template <class T>
inline constexpr T kInf = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

// ---- exact --------------------------------------------------------------------------------------

template <class T>
HWY_INLINE Vec<T> abs(Vec<T> x) {
  return {hn::Abs(x.raw)};
}
template <class T>
HWY_INLINE Vec<T> square(Vec<T> x) {
  return x * x;
}
template <class T>
HWY_INLINE Vec<T> sqrt(Vec<T> x) {
  return {hn::Sqrt(x.raw)};
}
template <class T>
HWY_INLINE Vec<T> reciprocal(Vec<T> x) {
  return set(T(1)) / x;
}
template <class T>
HWY_INLINE Vec<T> rsqrt(Vec<T> x) {
  return set(T(1)) / sqrt(x);
}
template <class T>
HWY_INLINE Vec<T> floor(Vec<T> x) {
  return {hn::Floor(x.raw)};
}
template <class T>
HWY_INLINE Vec<T> ceil(Vec<T> x) {
  return {hn::Ceil(x.raw)};
}
template <class T>
HWY_INLINE Vec<T> round(Vec<T> x) {
  return {hn::Round(x.raw)};
}
template <class T>
HWY_INLINE Vec<T> trunc(Vec<T> x) {
  return {hn::Trunc(x.raw)};
}
template <class T>
HWY_INLINE Vec<T> frac(Vec<T> x) {
  return x - trunc(x);
}
template <class T>
HWY_INLINE Vec<T> copysign(Vec<T> x, Vec<T> s) {
  return {hn::CopySign(x.raw, s.raw)};
}
template <class T>
HWY_INLINE Mask<T> isnan(Vec<T> x) {
  return x != x;
}
template <class T>
HWY_INLINE Mask<T> isinf(Vec<T> x) {
  return abs(x) == set(kInf<T>);
}
template <class T>
HWY_INLINE Mask<T> isfinite(Vec<T> x) {
  return abs(x) < set(kInf<T>);
}
template <class T>
HWY_INLINE Mask<T> signbit(Vec<T> x) {
  return copysign(set(T(1)), x) < set(T(0));
}
template <class T>
HWY_INLINE Vec<T> sign(Vec<T> x) {
  return where(x == set(T(0)), set(T(0)), where(isnan(x), x, copysign(set(T(1)), x)));
}
template <class T>
HWY_INLINE Vec<T> sgn(Vec<T> x) {
  return sign(x);
}
template <class T>
HWY_INLINE Vec<T> real(Vec<T> x) {
  return x;
}
template <class T>
HWY_INLINE Vec<T> conj(Vec<T> x) {
  return x;
}
template <class T>
HWY_INLINE Vec<T> imag(Vec<T>) {
  return set(T(0));
}
template <class T>
HWY_INLINE Vec<T> arg(Vec<T> x) {
  return where(isnan(x), x, where(x < set(T(0)), set(std::numbers::pi_v<T>), set(T(0))));
}

// a > b ? a : b, and a < b ? a : b. x86 has an instruction that is just that, of NaN and zeros,
// too.
template <class T>
HWY_INLINE Vec<T> greater_or_second(Vec<T> a, Vec<T> b) {
#if HWY_ARCH_X86
  return {hn::Max(a.raw, b.raw)};
#else
  return where(a > b, a, b);
#endif
}
template <class T>
HWY_INLINE Vec<T> less_or_second(Vec<T> a, Vec<T> b) {
#if HWY_ARCH_X86
  return {hn::Min(a.raw, b.raw)};
#else
  return where(a < b, a, b);
#endif
}
// NaN in either operand gives NaN.
template <class T>
HWY_INLINE Vec<T> maximum(Vec<T> a, Vec<T> b) {
  return where(isnan(a), a, greater_or_second(a, b));
}
template <class T>
HWY_INLINE Vec<T> minimum(Vec<T> a, Vec<T> b) {
  return where(isnan(a), a, less_or_second(a, b));
}
// NaN only where both operands are.
template <class T>
HWY_INLINE Vec<T> fmax(Vec<T> a, Vec<T> b) {
  return where(logical_or(isnan(b), a > b), a, b);
}
template <class T>
HWY_INLINE Vec<T> fmin(Vec<T> a, Vec<T> b) {
  return where(logical_or(isnan(b), a < b), a, b);
}
template <class T>
HWY_INLINE Vec<T> clamp(Vec<T> x, Vec<T> low, Vec<T> high) {
  return minimum(maximum(x, low), high);
}
template <class T>
HWY_INLINE Vec<T> relu(Vec<T> x) {
  return where(x < set(T(0)), set(T(0)), x);
}
template <class T>
HWY_INLINE Vec<T> nan_to_num(Vec<T> x, Vec<T> nan, Vec<T> positive, Vec<T> negative) {
  return where(isnan(x), nan,
               where(x == set(kInf<T>), positive, where(x == set(-kInf<T>), negative, x)));
}

// ---- exponentials and logarithms ----------------------------------------------------------------

// The value, or the bound where it is greater (smaller). A NaN is kept: of a NaN and a number, Min
// and Max give the second on x86, but the number on Arm.
template <class T>
HWY_INLINE hn::Vec<Tag<T>> at_most(hn::Vec<Tag<T>> x, T bound) {
  const auto most = hn::Set(Tag<T>(), bound);
#if HWY_ARCH_X86
  return hn::Min(most, x);
#else
  return hn::IfThenElse(hn::Gt(x, most), most, x);
#endif
}
template <class T>
HWY_INLINE hn::Vec<Tag<T>> at_least(hn::Vec<Tag<T>> x, T bound) {
  const auto least = hn::Set(Tag<T>(), bound);
#if HWY_ARCH_X86
  return hn::Max(least, x);
#else
  return hn::IfThenElse(hn::Lt(x, least), least, x);
#endif
}

// An integer as a float, and in the lowest bits of a word with `offset` added.
struct Rounded {
  hn::Vec<Tag<float>> n;
  hn::Vec<Tag<uint32_t>> bits;
};
// a b, where |a b| < 2^22.
HWY_INLINE Rounded round_product(hn::Vec<Tag<float>> a, float b, float offset) {
  const Tag<float> d;
  // Added to 1.5 * 2^23, a number is rounded to an integer.
  const auto shift = hn::Set(d, 12582912.0f + offset);
  const auto sum = hn::MulAdd(a, hn::Set(d, b), shift);
  return {hn::Sub(sum, shift), hn::BitCast(Tag<uint32_t>(), sum)};
}
// (e^(k s) - 1) / k = s + k s^2 q(k s) for |k s| <= log(2) / 2; the polynomial q was fitted with an
// error of 0.22 * 2^-24 in the whole.
template <int k>
HWY_INLINE hn::Vec<Tag<float>> expm1_over(hn::Vec<Tag<float>> s) {
  const Tag<float> d;
  constexpr float c[] = {k * 4.9999998150e-01f, k * k * 1.6666543424e-01f,
                         k * k * k * 4.1667200714e-02f, k * k * k * k * 8.3665472176e-03f,
                         k * k * k * k * k * 1.3882516536e-03f};
  auto q = hn::Set(d, c[4]);
  for (int i = 3; i >= 0; --i) q = hn::MulAdd(q, s, hn::Set(d, c[i]));
  return hn::MulAdd(hn::Mul(s, s), q, s);
}
// The float 2^(e - 127), where e is the lowest bits.
HWY_INLINE hn::Vec<Tag<float>> power_of_two(hn::Vec<Tag<uint32_t>> e) {
  return hn::BitCast(Tag<float>(), hn::ShiftLeft<23>(e));
}
// 2^n e^r, where x = n log 2 + r; the power in two factors, as it may be more or less than a float
// can be.
HWY_INLINE Vec<float> exp_float(Vec<float> x) {
  const Tag<float> d;
  // Infinite and zero where these are.
  const auto y = at_least(at_most(x.raw, 89.0f), -104.0f);
  const Rounded power = round_product(y, std::numbers::log2e_v<float>, 2 * 127);
  // log 2 in two parts, the first of so few bits that its product with n is exact.
  auto r = hn::NegMulAdd(power.n, hn::Set(d, 0.693359375f), y);
  r = hn::NegMulAdd(power.n, hn::Set(d, -2.12194440e-4f), r);
  const auto half = hn::ShiftRight<1>(power.bits);
  const auto first = power_of_two(half), second = power_of_two(hn::Sub(power.bits, half));
  return {hn::Mul(hn::MulAdd(first, expm1_over<1>(r), first), second)};
}
template <class T>
HWY_INLINE Vec<T> exp(Vec<T> x) {
  if constexpr (sizeof(T) == 4) return exp_float(x);
  constexpr T kHigh = T(709.782712893383973096);
  const Vec<T> bounded = where(x > set(kHigh), set(kHigh), x);
  const Vec<T> y = {hn::Exp(Tag<T>(), bounded.raw)};
  return where(isnan(x), x, where(x > set(kHigh), set(kInf<T>), y));
}
// 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)), in which nothing cancels; -1 from -87 on.
HWY_INLINE Vec<float> expm1_float(Vec<float> x) {
  const Tag<float> d;
  const auto y = at_least(at_most(x.raw, 89.0f), -87.0f);
  const Rounded power = round_product(y, std::numbers::log2e_v<float>, 126);
  auto r = hn::NegMulAdd(power.n, hn::Set(d, 0.693359375f), y);
  r = hn::NegMulAdd(power.n, hn::Set(d, -2.12194440e-4f), r);
  const auto half = power_of_two(power.bits);
  const auto sum = hn::MulAdd(half, expm1_over<1>(r), hn::Sub(half, hn::Set(d, 0.5f)));
  return where(x == set(0.0f), x, {hn::Add(sum, sum)});
}
template <class T>
HWY_INLINE Vec<T> expm1(Vec<T> x) {
  if constexpr (sizeof(T) == 4) return expm1_float(x);
  constexpr T kHigh = T(709.782712893383973096);
  const Vec<T> bounded = where(x > set(kHigh), set(kHigh), x);
  const Vec<T> y = {hn::Expm1(Tag<T>(), bounded.raw)};
  return where(logical_or(isnan(x), abs(x) < set(T(1e-17))), x,
               where(x > set(kHigh), set(kInf<T>), y));
}
// `y` where x is a positive finite number, what a logarithm is where it is not.
template <class T>
HWY_INLINE Vec<T> at_log_ends(Vec<T> x, Vec<T> y) {
  const Vec<T> bad = where(x == set(T(0)), set(-kInf<T>), set(kNaN<T>));
  return where(x > set(T(0)), where(x == set(kInf<T>), x, y), where(isnan(x), x, bad));
}
template <class T>
HWY_INLINE Vec<T> log(Vec<T> x) {
  return at_log_ends(x, {hn::Log(Tag<T>(), x.raw)});
}
// `y`, or k where x is 2^k: the logarithm of a power of two has no error.
template <class T>
HWY_INLINE Vec<T> at_powers_of_two(Vec<T> x, Vec<T> y) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int kDigits = std::numeric_limits<T>::digits - 1;
  // An integer below 2^kDigits in the lowest bits of this number is added to it.
  constexpr T kShift = T(Bits(1) << kDigits), kBias = T(std::numeric_limits<T>::max_exponent - 1);
  const Tag<Bits> d;
  const auto bits = hn::BitCast(d, x.raw);
  const auto fraction = hn::And(bits, hn::Set(d, (Bits(1) << kDigits) - 1));
  const auto shifted =
      hn::Or(hn::ShiftRight<kDigits>(bits), hn::BitCast(d, hn::Set(Tag<T>(), kShift)));
  const Vec<T> exponent = {
      hn::Sub(hn::BitCast(Tag<T>(), shifted), hn::Set(Tag<T>(), kShift + kBias))};
  return where(Mask<T>{hn::RebindMask(Tag<T>(), hn::Eq(fraction, hn::Zero(d)))}, exponent, y);
}
template <class T>
HWY_INLINE Vec<T> log2(Vec<T> x) {
  return at_log_ends(x, at_powers_of_two(x, {hn::Log2(Tag<T>(), x.raw)}));
}
template <class T>
HWY_INLINE Vec<T> log10(Vec<T> x) {
  return at_log_ends(x, {hn::Log10(Tag<T>(), x.raw)});
}
template <class T>
HWY_INLINE Vec<T> log1p(Vec<T> x) {
  const Vec<T> y = at_log_ends(x + set(T(1)), {hn::Log1p(Tag<T>(), x.raw)});
  return where(x == set(T(0)), x, y);
}
// float in lanes of a CPU: through double, with the same functions, is quicker than lane by lane.
template <class T>
inline constexpr bool kThroughDouble = std::is_same_v<T, float>&& Vec<T>::kLanes > 1;
// Whether MulAdd rounds once. Elsewhere, some functions of float lose digits unless they go through
// double.
#if HWY_NATIVE_FMA
inline constexpr bool kFusesProducts = true;
#else
inline constexpr bool kFusesProducts = false;
#endif
// By Horner's rule, the highest power first.
template <class T, size_t N>
HWY_INLINE Vec<T> polynomial(const T (&c)[N], Vec<T> x) {
  auto sum = hn::Set(Tag<T>(), c[0]);
  for (size_t i = 1; i < N; ++i) sum = hn::MulAdd(sum, x.raw, hn::Set(Tag<T>(), c[i]));
  return {sum};
}
// The even and the odd powers at once, as one sum would wait for each product.
template <class T, size_t N>
HWY_INLINE Vec<T> polynomial_by_halves(const T (&c)[N], Vec<T> x) {
  const auto square = hn::Mul(x.raw, x.raw);
  auto sum = hn::Set(Tag<T>(), c[0]), other = hn::Set(Tag<T>(), c[1]);
  for (size_t i = 2; i < N; i += 2) {
    sum = hn::MulAdd(sum, square, hn::Set(Tag<T>(), c[i]));
    if (i + 1 < N) other = hn::MulAdd(other, square, hn::Set(Tag<T>(), c[i + 1]));
  }
  if constexpr (N % 2 == 1) return {hn::MulAdd(other, x.raw, sum)};
  return {hn::MulAdd(sum, x.raw, other)};
}
// 2^t for |t| <= 200, to 2^-32 of it: the powers of t - round(t) up to the last above 2^-32.
HWY_INLINE Vec<double> exp2_of_float(Vec<double> t) {
  constexpr double kExp2[] = {1.3215486790144310e-6, 1.5252733804059841e-5, 1.5403530393381608e-4,
                              1.3333558146428443e-3, 9.6181291076284772e-3, 5.5504108664821580e-2,
                              2.4022650695910072e-1, 6.9314718055994531e-1, 1};
  const hn::RebindToUnsigned<Tag<double>> bits;
  const Vec<double> round = set(0x1.8p52 + 1023), rounded = t + round, n = rounded - round;
  const auto scale = hn::ShiftLeft<52>(hn::BitCast(bits, rounded.raw));
  return polynomial(kExp2, t - n) * Vec<double>{hn::BitCast(Tag<double>(), scale)};
}
// A positive normal x as 2^e m with m in [sqrt(1/2), sqrt(2)).
struct Scaled {
  Vec<double> e, m;
};
HWY_INLINE Scaled scaled_by_power(Vec<double> x) {
  const Tag<double> d;
  const hn::RebindToUnsigned<Tag<double>> bits;
  // Exponents become doubles in the lowest bits of 2^52.
  constexpr uint64_t kExponents = uint64_t{0xFFF} << 52, kUp = uint64_t{1024} << 52,
                     kRoot = 0x3FE6A09E667F3BCD, kMagic = 0x4330000000000000;
  const auto given = hn::BitCast(bits, x.raw);
  const auto above = hn::Sub(given, hn::Set(bits, kRoot - kUp));  // e + 1024, and the rest
  const auto counted = hn::Or(hn::ShiftRight<52>(above), hn::Set(bits, kMagic));
  const auto whole = hn::Sub(hn::And(above, hn::Set(bits, kExponents)), hn::Set(bits, kUp));
  return {{hn::Sub(hn::BitCast(d, counted), hn::Set(d, 0x1p52 + 1024))},
          {hn::BitCast(d, hn::Sub(given, whole))}};
}
// log2(x), to 2^-44 of it: a series in (m - 1) / (m + 1) gives log2(m).
template <class V>
HWY_INLINE V log2_of_float(V x) {
  const Scaled scaled = scaled_by_power(x);
  const V one = set(1.0), s = (scaled.m - one) / (scaled.m + one), z = s * s;
  return {hn::MulAdd(s.raw, polynomial(tables::kLog2, z).raw, scaled.e.raw)};
}
// log(1 + x) for x > -1, to 2^-44 of it: where 1 + x is its own m, x has the digits of m - 1.
template <class V>
HWY_INLINE V log1p_of_float(V x) {
  const V one = set(1.0);
  const Scaled scaled = scaled_by_power(x + one);
  const V above = where(scaled.e == set(0.0), x, V(scaled.m - one));
  const V s = above / (scaled.m + one), z = s * s;
  const V y = {hn::MulAdd(s.raw, polynomial(tables::kLog2, z).raw, scaled.e.raw)};
  return y * set(std::numbers::ln2);
}
template <class V>
HWY_INLINE V log_of_float(V x) {
  return log2_of_float(x) * set(std::numbers::ln2);
}
// e^x for |x| <= 138, to 2^-32 of it; beyond, what a float shows as infinity and zero.
template <class V>
HWY_INLINE V exp_of_float(V x) {
  const V t = x * set(std::numbers::log2e);
  return exp2_of_float({at_least(at_most(t.raw, 200.0), -200.0)});
}
// 2^n 2^s, where x = n + s, the power in two factors as that of exp_float.
template <class V>
HWY_INLINE V exp2_float(V x) {
  const auto y = at_least(at_most(x.raw, 129.0f), -152.0f);
  const Rounded power = round_product(y, 1.0f, 2 * 127);
  const V s = {hn::Sub(y, power.n)};
  const auto half = hn::ShiftRight<1>(power.bits);
  const auto first = power_of_two(half), second = power_of_two(hn::Sub(power.bits, half));
  const auto rest =
      hn::MulAdd(s.raw, polynomial(tables::kExp2, s).raw, hn::Set(Tag<float>(), 1.0f));
  return {hn::Mul(hn::Mul(first, rest), second)};
}
template <class T>
HWY_INLINE Vec<T> exp2(Vec<T> x) {
  if constexpr (kThroughDouble<T> && kFusesProducts) {
    return exp2_float(x);
  } else if constexpr (kThroughDouble<T>) {
    const auto power = [](Vec<double> v) HWY_ATTR {
      return exp2_of_float({at_least(at_most(v.raw, 200.0), -200.0)});
    };
    return through_double(power, x);
  } else {
    return map_lanes([](T v) { return std::exp2(v); }, x);
  }
}
template <class T>
HWY_INLINE Vec<T> logaddexp(Vec<T> a, Vec<T> b) {
  const Vec<T> sum = maximum(a, b) + log1p(exp(-abs(a - b)));
  return where(logical_and(isinf(a), a == b), a, sum);
}

template <class T>
HWY_INLINE Vec<T> logaddexp2(Vec<T> a, Vec<T> b) {
  const Vec<T> rest = log1p(exp2(-abs(a - b))) * set(std::numbers::log2e_v<T>);
  return where(logical_and(isinf(a), a == b), a, maximum(a, b) + rest);
}

// ---- trigonometric and hyperbolic ---------------------------------------------------------------

// `fast` where |x| < limit, else lane by lane: range reduction of large numbers needs many digits
// of pi.
template <class T, class F>
HWY_INLINE Vec<T> or_lanes(Vec<T> x, T limit, Vec<T> fast, F slow) {
  return fill_lanes(abs(x) < set(limit), fast, slow, x);
}
template <class T>
inline constexpr T kTrigLimit = sizeof(T) == 4 ? T(10000) : T(100000);
template <class T>
HWY_INLINE Vec<T> sin(Vec<T> x) {
  const Vec<T> y =
      or_lanes(x, kTrigLimit<T>, {hn::Sin(Tag<T>(), x.raw)}, [](T v) { return std::sin(v); });
  return where(x == set(T(0)), x, y);
}
template <class T>
HWY_INLINE Vec<T> cos(Vec<T> x) {
  const Vec<T> y =
      or_lanes(x, kTrigLimit<T>, {hn::Cos(Tag<T>(), x.raw)}, [](T v) { return std::cos(v); });
  // Where x^2 / 2 is less than half of what 1 can lose.
  const Mask<T> flat = abs(x) < set(sizeof(T) == 4 ? T(0x1p-12) : T(1.0536e-8));
  return where(flat, set(T(1)), y);
}
// sin(x) and cos(x) of a float below 10^5, to 2^-33 of them: x is a multiple of pi / 2, which is
// taken off in three parts, the first two of so few bits that their products are exact, and a rest.
struct Angle {
  Vec<double> sine, cosine;
};
template <class V>
HWY_INLINE Angle angle_of_float(V x) {
  const hn::RebindToUnsigned<Tag<double>> bits;
  const Tag<double> d;
  const V shift = set(0x1.8p52), shifted = x * set(2 / std::numbers::pi) + shift;
  const auto n = (shifted - shift).raw;
  auto rest = hn::NegMulAdd(n, hn::Set(d, 0x1.921fb544p+0), x.raw);
  rest = hn::NegMulAdd(n, hn::Set(d, 0x1.0b4611a6p-34), rest);
  const V r = {hn::NegMulAdd(n, hn::Set(d, 0x1.3198a2e037073p-69), rest)};
  const V square = r * r, s = r * polynomial(tables::kSine, square);
  const V c = polynomial(tables::kCosine, square);
  // The lowest two bits of n say by how many quarters the angle is turned.
  const auto quarters = hn::BitCast(bits, shifted.raw);
  const auto one = hn::Set(bits, 1);
  const auto is_odd = hn::Eq(hn::And(quarters, one), one);
  const Mask<double> odd = {hn::RebindMask(Tag<double>(), is_odd)};
  const auto turned = [&](V y, auto by) HWY_ATTR {
    const auto sign = hn::ShiftLeft<62>(hn::And(by, hn::Set(bits, 2)));
    return V{hn::BitCast(Tag<double>(), hn::Xor(hn::BitCast(bits, y.raw), sign))};
  };
  return {turned(where(odd, c, s), quarters), turned(where(odd, s, c), hn::Add(quarters, one))};
}
inline constexpr double kAngleLimit = 1e5;
template <class T>
HWY_INLINE Vec<T> tan(Vec<T> x) {
  const auto slow = [](T v) { return std::tan(v); };
  if constexpr (kThroughDouble<T>) {
    const auto quotient = [](Vec<double> v) HWY_ATTR {
      const Angle angle = angle_of_float(v);
      return angle.sine / angle.cosine;
    };
    const Vec<T> y = or_lanes(x, T(kAngleLimit), through_double(quotient, x), slow);
    return where(x == set(T(0)), x, y);
  } else {
    return map_lanes(slow, x);
  }
}
// sin(pi x) / (pi x); half turns are taken off before the product with pi is rounded, so that the
// zeros are zeros and what is near them has all its digits.
template <class T>
HWY_INLINE Vec<T> sinc(Vec<T> x) {
  const Vec<T> pi = set(std::numbers::pi_v<T>), turns = round(x), half = turns * set(T(0.5));
  const Vec<T> sine = sin(pi * (x - turns));
  const Vec<T> y = where(half == floor(half), sine, -sine) / (pi * x);
  return where(x == set(T(0)), set(T(1)), where(isinf(x), set(T(0)), y));
}
template <class T>
HWY_INLINE Vec<T> asin(Vec<T> x) {
  return where(abs(x) <= set(T(1)), {hn::Asin(Tag<T>(), x.raw)}, where(isnan(x), x, set(kNaN<T>)));
}
template <class T>
HWY_INLINE Vec<T> acos(Vec<T> x) {
  return where(abs(x) <= set(T(1)), {hn::Acos(Tag<T>(), x.raw)}, where(isnan(x), x, set(kNaN<T>)));
}
template <class T>
HWY_INLINE Vec<T> atan(Vec<T> x) {
  return where(isnan(x), x, {hn::Atan(Tag<T>(), x.raw)});
}
template <class T>
HWY_INLINE Vec<T> atan2(Vec<T> y, Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    // The quotient of the smaller by the larger, and the angle from the nearest axis.
    const auto angle = [](Vec<double> v, Vec<double> u) HWY_ATTR {
      constexpr double kPi = std::numbers::pi;
      const Vec<double> up = abs(v), along = abs(u), larger = fmax(up, along);
      Vec<double> q = fmin(up, along) / larger;
      q = where(larger == set(0.0), larger,
                where(fmin(up, along) == set(kInf<double>), set(1.0), q));
      const Vec<double> near = q * polynomial(tables::kArctangent, q * q);
      const Vec<double> first = where(up > along, set(kPi / 2) - near, near);
      const Vec<double> y = copysign(where(signbit(u), set(kPi) - first, first), v);
      return where(logical_or(isnan(u), isnan(v)), u + v, y);
    };
    return through_double(angle, y, x);
  } else {
    return map_lanes([](T a, T b) { return std::atan2(a, b); }, y, x);
  }
}
template <class T>
HWY_INLINE Vec<T> sinh(Vec<T> x) {
  const T limit = sizeof(T) == 4 ? T(44) : T(350);
  const Vec<T> y =
      or_lanes(x, limit, {hn::Sinh(Tag<T>(), x.raw)}, [](T v) { return std::sinh(v); });
  return where(abs(x) < set(sizeof(T) == 4 ? T(1e-5) : T(1e-9)), x, y);
}
template <class T>
HWY_INLINE Vec<T> cosh(Vec<T> x) {
  if constexpr (kThroughDouble<T>) {
    const auto half_sum = [](Vec<double> v) HWY_ATTR { return (exp(v) + exp(-v)) * set(0.5); };
    return through_double(half_sum, x);
  } else {
    return map_lanes([](T v) { return std::cosh(v); }, x);
  }
}
// e / (e + 1) for e = (e^(2 |x|) - 1) / 2, in which nothing cancels: with |x| = n log(2) / 2 + s it
// is 2^n (e^(2 s) - 1) / 2 + (2^n - 1) / 2. Beyond 10 it is 1. The error that rounding log 2 adds
// to s matters the less the greater n is.
HWY_INLINE Vec<float> tanh_float(Vec<float> x) {
  const Tag<float> d;
  const auto y = at_most(hn::Abs(x.raw), 10.0f);
  const Rounded rounded = round_product(y, 2 * std::numbers::log2e_v<float>, 127);
  const auto s = hn::NegMulAdd(rounded.n, hn::Set(d, std::numbers::ln2_v<float> / 2), y);
  const auto power = power_of_two(rounded.bits);
  const auto rest = hn::MulAdd(power, hn::Set(d, 0.5f), hn::Set(d, -0.5f));
  const auto e = hn::MulAdd(power, expm1_over<2>(s), rest);
  return {hn::CopySign(hn::Div(e, hn::Add(e, hn::Set(d, 1.0f))), x.raw)};
}
template <class T>
HWY_INLINE Vec<T> tanh(Vec<T> x) {
  if constexpr (sizeof(T) == 4) return tanh_float(x);
  const Vec<T> y = {hn::Tanh(Tag<T>(), fmin(fmax(x, set(T(-40))), set(T(40))).raw)};
  return where(logical_or(isnan(x), abs(x) < set(T(1e-9))), x, y);
}
template <class T>
HWY_INLINE Vec<T> asinh(Vec<T> x) {
  const T limit = sizeof(T) == 4 ? T(1e18) : T(1e150);
  return or_lanes(x, limit, {hn::Asinh(Tag<T>(), x.raw)}, [](T v) { return std::asinh(v); });
}
template <class T>
HWY_INLINE Vec<T> acosh(Vec<T> x) {
  const T limit = sizeof(T) == 4 ? T(1e18) : T(1e150);
  const Vec<T> y =
      or_lanes(x, limit, {hn::Acosh(Tag<T>(), x.raw)}, [](T v) { return std::acosh(v); });
  return where(x < set(T(1)), set(kNaN<T>), y);
}
template <class T>
HWY_INLINE Vec<T> atanh(Vec<T> x) {
  const Vec<T> size = abs(x), one = set(T(1));
  const Vec<T> y =
      where(size < set(sizeof(T) == 4 ? T(1e-5) : T(1e-9)), x, {hn::Atanh(Tag<T>(), x.raw)});
  return where(size < one, y,
               where(size == one, copysign(set(kInf<T>), x), where(isnan(x), x, set(kNaN<T>))));
}

// ---- activations --------------------------------------------------------------------------------

// factor / (1 + exp(-x)); the exponential is that of -|x|, which does not overflow.
template <class T>
HWY_INLINE Vec<T> times_sigmoid(Vec<T> factor, Vec<T> x) {
  const Vec<T> e = exp(-abs(x));
  return where(x < set(T(0)), factor * e, factor) / (set(T(1)) + e);
}
template <class T>
HWY_INLINE Vec<T> sigmoid(Vec<T> x) {
  return times_sigmoid(set(T(1)), x);
}
template <class T>
HWY_INLINE Vec<T> silu(Vec<T> x) {
  return times_sigmoid(x, x);
}
template <class T>
HWY_INLINE Vec<T> gelu_tanh(Vec<T> x) {
  // (1 + tanh(y)) / 2 is the sigmoid of 2 y.
  const Vec<T> inner = set(T(1.59576912160573071176)) * (x + set(T(0.044715)) * x * x * x);
  return times_sigmoid(x, inner);
}
template <class T>
HWY_INLINE Vec<T> softplus(Vec<T> x, Vec<T> beta, Vec<T> threshold) {
  const Vec<T> scaled = x * beta;
  return where(scaled > threshold, x, log1p(exp(scaled)) / beta);
}
template <class T>
HWY_INLINE Vec<T> softplus(Vec<T> x, Vec<T> beta) {
  return softplus(x, beta, set(T(20)));
}
template <class T>
HWY_INLINE Vec<T> softplus(Vec<T> x) {
  return softplus(x, set(T(1)), set(T(20)));
}

// ---- two numbers --------------------------------------------------------------------------------

// x^y for the finite, positive x and the y of a float, to 2^-28 of it where it is a float's.
template <class V>
HWY_INLINE V power_of_float(V x, V y) {
  const Vec<double> t = y * log2_of_float(x);
  return exp2_of_float({at_least(at_most(t.raw, 200.0), -200.0)});
}
template <class T>
HWY_INLINE Vec<T> pow(Vec<T> a, Vec<T> b) {
  // The same bits as scalar::pow, for the exponents that whole tensors are raised to.
  if (hn::AllTrue(Tag<T>(), hn::Eq(b.raw, hn::Set(Tag<T>(), T(2))))) return a * a;
  if (hn::AllTrue(Tag<T>(), hn::Eq(b.raw, hn::Set(Tag<T>(), T(3))))) return a * a * a;
  const Vec<T> root = where(a == set(-kInf<T>), set(kInf<T>), sqrt(a) + set(T(0)));
  if (hn::AllTrue(Tag<T>(), hn::Eq(b.raw, hn::Set(Tag<T>(), T(0.5))))) return root;
  if constexpr (kThroughDouble<T>) {
    const Vec<T> zero = set(T(0)), one = set(T(1)), two = set(T(2)), size = abs(a);
    Vec<T> y = through_double([](Vec<double> x, Vec<double> exponent)
                                  HWY_ATTR { return power_of_float(x, exponent); },
                              size, b);
    // Where x or the exponent is at an end of its range.
    const Mask<T> grows = logical_xor(size<one, b> zero);
    const Mask<T> at_end = logical_or(logical_or(size == zero, isinf(size)), isinf(b));
    y = where(at_end, where(grows, set(kInf<T>), zero), y);
    y = where(logical_or(isnan(a), isnan(b)), set(kNaN<T>), y);
    // Negative bases: odd exponents change the sign, those that are no integers have no result.
    // Large floats are even, infinity is.
    const Mask<T> odd = logical_and(trunc(b) == b, trunc(b / two) * two != b);
    y = where(logical_and(signbit(a), odd), -y, y);
    const Mask<T> below = logical_and(a < zero, isfinite(a));
    y = where(logical_and(below, trunc(b) != b), set(kNaN<T>), y);
    y = where(logical_or(a == one, logical_and(size == one, isinf(b))), one, y);
    // The powers of scalar::pow, whatever is beside them.
    y = where(b == zero, one, where(b == one, a, where(b == set(T(0.5)), root, y)));
    return where(b == two, a * a, where(b == set(T(3)), a * a * a, y));
  } else {
    return map_lanes([](T x, T y) { return scalar::pow(x, y); }, a, b);
  }
}
template <class T>
HWY_INLINE Vec<T> hypot(Vec<T> a, Vec<T> b) {
  if constexpr (kThroughDouble<T>) {
    const auto length = [](Vec<double> x, Vec<double> y) HWY_ATTR { return sqrt(x * x + y * y); };
    return where(logical_or(isinf(a), isinf(b)), set(kInf<T>), through_double(length, a, b));
  } else {
    return map_lanes([](T x, T y) { return std::hypot(x, y); }, a, b);
  }
}
template <class T>
HWY_INLINE Vec<T> nextafter(Vec<T> a, Vec<T> b) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const Tag<Bits> d;
  const Vec<T> zero = set(T(0));
  // Numbers of one sign are in the order of their bits.
  const auto bits = hn::BitCast(d, a.raw), one = hn::Set(d, Bits(1));
  const Vec<T> larger = {hn::BitCast(Tag<T>(), hn::Add(bits, one))};
  const Vec<T> smaller = {hn::BitCast(Tag<T>(), hn::Sub(bits, one))};
  Vec<T> y = where(logical_xor(a > zero, b > a), smaller, larger);
  const Vec<T> smallest = {hn::BitCast(Tag<T>(), one)};
  y = where(a == zero, copysign(smallest, b), y);
  return where(a == b, b, where(logical_or(isnan(a), isnan(b)), a + b, y));
}
// For floats, exactly: their product with a quotient below 2^29 fits into a double. A quotient that
// was rounded up to an integer leaves a rest of the other sign.
template <class T>
HWY_INLINE Vec<T> fmod(Vec<T> a, Vec<T> b) {
  const auto slow = [](T x, T y) { return std::fmod(x, y); };
  if constexpr (kThroughDouble<T>) {
    const Mask<T> fits = logical_and(abs(a / b) < set(T(1 << 28)), isfinite(b));
    const Vec<T> y = through_double(
        [](Vec<double> x, Vec<double> by) HWY_ATTR {
          const Vec<double> rest = x - trunc(x / by) * by;
          const Mask<double> over = logical_and(rest != set(0.0), signbit(rest * x));
          return copysign(where(over, rest + copysign(by, x), rest), x);
        },
        a, b);
    if (HWY_LIKELY(hn::AllTrue(Tag<T>(), fits.raw))) return y;
    return where(fits, y, map_lanes(slow, a, b));
  } else {
    return map_lanes(slow, a, b);
  }
}
template <class T>
HWY_INLINE Vec<T> remainder(Vec<T> a, Vec<T> b) {
  if constexpr (kThroughDouble<T>) {
    const Vec<T> mod = fmod(a, b), zero = set(T(0));
    const Mask<T> other_side = logical_xor(b < zero, mod < zero);
    return where(mod == zero, copysign(mod, b), where(other_side, mod + b, mod));
  } else {
    return map_lanes([](T x, T y) { return scalar::remainder(x, y); }, a, b);
  }
}
template <class T>
HWY_INLINE Vec<T> floor_divide(Vec<T> a, Vec<T> b) {
  if constexpr (kThroughDouble<T>) {  // the steps of scalar::floor_divide
    const Vec<T> mod = fmod(a, b), zero = set(T(0)), one = set(T(1)), quotient = a / b;
    const Mask<T> other_side = logical_and(mod != zero, logical_xor(b < zero, mod < zero));
    Vec<T> div = (a - mod) / b;
    div = where(other_side, div - one, div);
    const Vec<T> floored = floor(div);
    const Vec<T> nearest = where(div - floored > set(T(0.5)), floored + one, floored);
    return where(b == zero, quotient, where(div == zero, copysign(zero, quotient), nearest));
  }
  return map_lanes([](T x, T y) { return scalar::floor_divide(x, y); }, a, b);
}
template <class T>
HWY_INLINE Vec<T> trunc_divide(Vec<T> a, Vec<T> b) {
  return trunc(a / b);
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
