// The functions of expressions over blocks of elements, with which evaluate.hpp interprets a tree.
// They exist for integers and bool (in 64 bits), floating and complex numbers.
#pragma once

#include <cmath>
#include <limits>

#include "treadle/plugin/types.hpp"

#pragma GCC visibility push(hidden)

namespace treadle::plugin::detail {

// A function of up to four numbers. Truth values are 1 and 0.
template <class T>
struct Function {
  const char* name;
  int32_t arity;
  union {
    T (*one)(T);
    T (*two)(T, T);
    T (*three)(T, T, T);
    T (*four)(T, T, T, T);
  } call;

  // out[i] = f(x[0][i], ...) for i < n.
  void run(const T* const* x, T* out, int64_t n) const {
    switch (arity) {
      case 1:
        for (int64_t i = 0; i < n; ++i) out[i] = call.one(x[0][i]);
        return;
      case 2:
        for (int64_t i = 0; i < n; ++i) out[i] = call.two(x[0][i], x[1][i]);
        return;
      case 3:
        for (int64_t i = 0; i < n; ++i) out[i] = call.three(x[0][i], x[1][i], x[2][i]);
        return;
      default:
        for (int64_t i = 0; i < n; ++i) out[i] = call.four(x[0][i], x[1][i], x[2][i], x[3][i]);
    }
  }
};

template <class T>
class Functions {
 public:
  // Null if there is none.
  const Function<T>* find(const char* name, int32_t arity) const {
    for (const Function<T>& function : list_)
      if (function.arity == arity && std::strcmp(function.name, name) == 0) return &function;
    return nullptr;
  }

 protected:
  void one(const char* name, T (*f)(T)) { add(name, 1).one = f; }
  void two(const char* name, T (*f)(T, T)) { add(name, 2).two = f; }
  void three(const char* name, T (*f)(T, T, T)) { add(name, 3).three = f; }
  void four(const char* name, T (*f)(T, T, T, T)) { add(name, 4).four = f; }

  // The functions of all numbers.
  void add_common() {
    for (const char* name : {"logical_not", "!"}) one(name, [](T x) { return T(x == T(0)); });
    for (const char* name : {"logical_and", "&&"})
      two(name, [](T a, T b) { return T(a != T(0) && b != T(0)); });
    for (const char* name : {"logical_or", "||"})
      two(name, [](T a, T b) { return T(a != T(0) || b != T(0)); });
    two("logical_xor", [](T a, T b) { return T((a != T(0)) != (b != T(0))); });
    one("cast_bool", [](T x) { return T(x != T(0)); });
    two("==", [](T a, T b) { return T(a == b); });
    two("!=", [](T a, T b) { return T(a != b); });
    three("where", [](T c, T a, T b) { return c != T(0) ? a : b; });
  }
  // The functions of ordered numbers. A NaN is the only number that differs from itself.
  void add_ordered() {
    two("<", [](T a, T b) { return T(a < b); });
    two("<=", [](T a, T b) { return T(a <= b); });
    two(">", [](T a, T b) { return T(a > b); });
    two(">=", [](T a, T b) { return T(a >= b); });
    two("maximum", maximum);
    two("minimum", minimum);
    two("fmax", [](T a, T b) { return b != b || a > b ? a : b; });
    two("fmin", [](T a, T b) { return b != b || a < b ? a : b; });
    three("clamp", [](T x, T low, T high) { return minimum(maximum(x, low), high); });
    one("relu", [](T x) { return x < T(0) ? T(0) : x; });
    for (const char* name : {"real", "conj"}) one(name, [](T x) { return x; });
    one("imag", [](T) { return T(0); });
  }

 private:
  static T maximum(T a, T b) { return a != a || a > b ? a : b; }
  static T minimum(T a, T b) { return a != a || a < b ? a : b; }
  decltype(Function<T>::call)& add(const char* name, int32_t arity) {
    list_.push_back({name, arity, {}});
    return list_.back().call;
  }

  std::vector<Function<T>> list_;
};

// T: int64_t, or uint64_t for unsigned dtypes. Results are modulo 2^64. The caller wraps them to
// the dtype's width.
template <class T>
class IntegerFunctions : public Functions<T> {
 public:
  IntegerFunctions() {
    this->add_common();
    this->add_ordered();
    add_arithmetic();
    add_division();
    add_bits();
  }

 private:
  using U = uint64_t;
  static T size(T x) { return x < T(0) ? T(U(0) - U(x)) : x; }
  static void check_divisor(T b, const char* who) {
    check(b != T(0), ErrorKind::Runtime, who, ": expected a non-zero divisor, got 0");
  }
  // The only quotient that does not fit.
  static bool overflows(T a, T b) {
    return std::is_signed_v<T> && b == T(-1) && a == std::numeric_limits<T>::min();
  }
  static T pow(T base, T exponent) {
    if (exponent < T(0))
      return base == T(1) ? T(1) : base != T(-1) ? T(0) : exponent % 2 != T(0) ? T(-1) : T(1);
    U result = 1, power = U(base);
    for (U e = U(exponent); e != 0; e >>= 1, power *= power)
      if ((e & 1) != 0) result *= power;
    return T(result);
  }
  static T gcd(T a, T b) {
    U x = U(size(a)), y = U(size(b));
    while (y != 0) x = std::exchange(y, x % y);
    return T(x);
  }
  static T lcm(T a, T b) {
    const U divisor = U(gcd(a, b));
    return divisor == 0 ? T(0) : T(U(size(a)) / divisor * U(size(b)));
  }

  void add_arithmetic() {
    this->two("+", [](T a, T b) { return T(U(a) + U(b)); });
    this->two("-", [](T a, T b) { return T(U(a) - U(b)); });
    this->two("*", [](T a, T b) { return T(U(a) * U(b)); });
    this->one("-", [](T a) { return T(U(0) - U(a)); });
    this->one("abs", size);
    this->one("square", [](T a) { return T(U(a) * U(a)); });
    this->two("pow", pow);
    this->two("gcd", gcd);
    this->two("lcm", lcm);
    for (const char* name : {"sign", "sgn"})
      this->one(name, [](T a) { return T((a > T(0)) - (a < T(0))); });
    this->one("signbit", [](T a) { return T(a < T(0)); });
    for (const char* name : {"floor", "ceil", "round", "trunc"})
      this->one(name, [](T a) { return a; });
    for (const char* name : {"isnan", "isinf"}) this->one(name, [](T) { return T(0); });
    this->one("isfinite", [](T) { return T(1); });
    this->four("nan_to_num", [](T x, T, T, T) { return x; });
  }

  void add_division() {
    this->two("trunc_divide", [](T a, T b) {
      check_divisor(b, "trunc_divide");
      return overflows(a, b) ? a : T(a / b);
    });
    this->two("floor_divide", [](T a, T b) {
      check_divisor(b, "floor_divide");
      if (overflows(a, b)) return a;
      return T(a / b - T(a % b != T(0) && (a % b < T(0)) != (b < T(0))));
    });
    this->two("fmod", [](T a, T b) {
      check_divisor(b, "fmod");
      return overflows(a, b) ? T(0) : T(a % b);
    });
    this->two("remainder", [](T a, T b) {
      check_divisor(b, "remainder");
      const T rest = overflows(a, b) ? T(0) : T(a % b);
      return rest != T(0) && (rest < T(0)) != (b < T(0)) ? T(rest + b) : rest;
    });
  }

  // A shift by the dtype's width or more leaves zeros, or copies of the sign.
  void add_bits() {
    this->two("bitwise_and", [](T a, T b) { return T(a & b); });
    this->two("bitwise_or", [](T a, T b) { return T(a | b); });
    this->two("bitwise_xor", [](T a, T b) { return T(a ^ b); });
    this->one("bitwise_not", [](T a) { return T(~a); });
    this->two("shift_left", [](T a, T b) { return b < T(0) || b > T(63) ? T(0) : T(U(a) << b); });
    this->two("shift_right", [](T a, T b) {
      if (b < T(0) || b > T(63)) return a < T(0) ? T(-1) : T(0);
      return T(a >> b);
    });
  }
};

template <class T>
class FloatFunctions : public Functions<T> {
 public:
  FloatFunctions() {
    this->add_common();
    this->add_ordered();
    add_arithmetic();
    add_elementary();
    add_activations();
  }

 private:
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  static constexpr T kPi = T(3.14159265358979323846L), kRootOfTwo = T(1.41421356237309504880L);

  static T sigmoid(T x) {
    const T e = std::exp(-std::abs(x));  // of -|x|, which does not overflow
    return (x < 0 ? e : T(1)) / (1 + e);
  }
  static T softplus(T x, T beta, T threshold) {
    return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
  }
  static T remainder(T a, T b) {  // with the sign of the divisor, also where it is zero
    const T rest = std::fmod(a, b);
    if (rest == 0) return std::copysign(rest, b);
    return (b < 0) != (rest < 0) ? rest + b : rest;
  }
  static T floor_divide(T a, T b) {  // floor(a / b) without the rounding of the quotient
    if (b == 0) return a / b;
    const T rest = std::fmod(a, b);
    T quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(T(0), a / b);
    const T floored = std::floor(quotient);
    return quotient - floored > T(0.5) ? floored + 1 : floored;
  }

  void add_arithmetic() {
    this->two("+", [](T a, T b) { return a + b; });
    this->two("-", [](T a, T b) { return a - b; });
    this->two("*", [](T a, T b) { return a * b; });
    this->two("/", [](T a, T b) { return a / b; });
    this->one("-", [](T x) { return -x; });
    this->one("abs", [](T x) { return std::abs(x); });
    this->one("square", [](T x) { return x * x; });
    this->one("reciprocal", [](T x) { return 1 / x; });
    for (const char* name : {"sign", "sgn"})
      this->one(name, [](T x) { return x != x ? x : T((x > 0) - (x < 0)); });
    this->one("signbit", [](T x) { return T(std::signbit(x)); });
    this->one("floor", [](T x) { return std::floor(x); });
    this->one("ceil", [](T x) { return std::ceil(x); });
    this->one("round", [](T x) { return std::nearbyint(x); });
    this->one("trunc", [](T x) { return std::trunc(x); });
    this->one("frac", [](T x) { return x - std::trunc(x); });
    this->one("isnan", [](T x) { return T(x != x); });
    this->one("isinf", [](T x) { return T(std::abs(x) == kInfinity); });
    this->one("isfinite", [](T x) { return T(std::abs(x) < kInfinity); });
    this->one("arg", [](T x) { return x != x ? x : x < 0 ? kPi : T(0); });
    this->four("nan_to_num", [](T x, T nan, T positive, T negative) {
      return x != x ? nan : x == kInfinity ? positive : x == -kInfinity ? negative : x;
    });
    this->two("copysign", [](T a, T b) { return std::copysign(a, b); });
    this->two("nextafter", [](T a, T b) { return std::nextafter(a, b); });
    this->two("fmod", [](T a, T b) { return std::fmod(a, b); });
    this->two("remainder", remainder);
    this->two("floor_divide", floor_divide);
    this->two("trunc_divide", [](T a, T b) { return std::trunc(a / b); });
  }

  void add_elementary() {
    this->one("sqrt", [](T x) { return std::sqrt(x); });
    this->one("rsqrt", [](T x) { return 1 / std::sqrt(x); });
    this->one("exp", [](T x) { return std::exp(x); });
    this->one("exp2", [](T x) { return std::exp2(x); });
    this->one("expm1", [](T x) { return std::expm1(x); });
    this->one("log", [](T x) { return std::log(x); });
    this->one("log2", [](T x) { return std::log2(x); });
    this->one("log10", [](T x) { return std::log10(x); });
    this->one("log1p", [](T x) { return std::log1p(x); });
    this->two("pow", [](T a, T b) { return b == 2 ? a * a : std::pow(a, b); });
    this->two("hypot", [](T a, T b) { return std::hypot(a, b); });
    this->two("logaddexp", [](T a, T b) {
      if (std::abs(a) == kInfinity && a == b) return a;
      if (a != a || b != b) return a + b;
      return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
    });
    this->two("logaddexp2", [](T a, T b) {
      if (std::abs(a) == kInfinity && a == b) return a;
      if (a != a || b != b) return a + b;
      constexpr T kLog2OfE = T(1.44269504088896340736L);
      return std::max(a, b) + std::log1p(std::exp2(-std::abs(a - b))) * kLog2OfE;
    });
    this->one("sin", [](T x) { return std::sin(x); });
    this->one("cos", [](T x) { return std::cos(x); });
    this->one("tan", [](T x) { return std::tan(x); });
    this->one("asin", [](T x) { return std::asin(x); });
    this->one("acos", [](T x) { return std::acos(x); });
    this->one("atan", [](T x) { return std::atan(x); });
    this->two("atan2", [](T a, T b) { return std::atan2(a, b); });
    this->one("sinh", [](T x) { return std::sinh(x); });
    this->one("cosh", [](T x) { return std::cosh(x); });
    this->one("tanh", [](T x) { return std::tanh(x); });
    this->one("asinh", [](T x) { return std::asinh(x); });
    this->one("acosh", [](T x) { return std::acosh(x); });
    this->one("atanh", [](T x) { return std::atanh(x); });
    // Half turns are removed before the product with pi is rounded.
    this->one("sinc", [](T x) {
      if (x == 0) return T(1);
      if (std::abs(x) == kInfinity) return T(0);
      const T turns = std::nearbyint(x), sine = std::sin(kPi * (x - turns));
      return (std::fmod(turns, T(2)) == 0 ? sine : -sine) / (kPi * x);
    });
  }

  void add_activations() {
    this->one("erf", [](T x) { return std::erf(x); });
    this->one("erfc", [](T x) { return std::erfc(x); });
    this->one("ndtr", [](T x) { return std::erfc(-x / kRootOfTwo) / 2; });
    this->one("lgamma", [](T x) {
      int sign;  // std::lgamma would write a variable that threads share
      if constexpr (sizeof(T) == 4)
        return lgammaf_r(x, &sign);
      else
        return lgamma_r(x, &sign);
    });
    this->one("sigmoid", sigmoid);
    this->one("silu", [](T x) { return x * sigmoid(x); });
    // erfc, not 1 + erf: below zero the small result keeps all its digits.
    this->one("gelu", [](T x) { return x / 2 * std::erfc(-x / kRootOfTwo); });
    this->one("gelu_slope", [](T x) {
      const T density = std::exp(x * x / -2) * T(0.39894228040143267794);
      return std::erfc(-x / kRootOfTwo) / 2 + x * density;
    });
    this->one("gelu_tanh", [](T x) {
      return x * sigmoid(T(1.59576912160573071176) * (x + T(0.044715) * x * x * x));
    });
    this->three("softplus", softplus);
    this->two("softplus", [](T x, T beta) { return softplus(x, beta, T(20)); });
    this->one("softplus", [](T x) { return softplus(x, T(1), T(20)); });
  }
};

template <class R>
class ComplexFunctions : public Functions<std::complex<R>> {
 public:
  using T = std::complex<R>;
  ComplexFunctions() {
    this->add_common();
    add_arithmetic();
    add_elementary();
  }

 private:
  // A type with more digits, for values that an exponential would magnify.
  using Wider = std::conditional_t<std::is_same_v<R, float>, double, long double>;
  static T product(T a, T b) {
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  }
  static T wider_pow(std::complex<Wider> a, std::complex<Wider> b) { return T(std::pow(a, b)); }
  static T expm1(T z) {
    const R half = std::sin(z.imag() / 2);
    return T(std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half,
             z.imag() == 0 ? z.imag() : std::exp(z.real()) * std::sin(z.imag()));
  }
  static T log1p(T z) {
    if (std::abs(z.real()) > R(0.5) || std::abs(z.imag()) > R(0.5)) return std::log(z + R(1));
    return T(std::log1p(z.real() * (2 + z.real()) + z.imag() * z.imag()) / 2,
             std::atan2(z.imag(), z.real() + 1));
  }
  static T sigmoid(T z) {
    const T e = std::exp(z.real() < 0 ? z : -z);
    return (z.real() < 0 ? e : T(1)) / (T(1) + e);
  }
  static T pow(T a, T b) {
    if (b == T(2)) return product(a, a);
    if (b == T(1)) return a;
    if (b == T(0)) return T(1);
    if (b == T(R(0.5))) return std::sqrt(a);
    if (b == T(-1)) return T(1) / a;
    return wider_pow(std::complex<Wider>(a), std::complex<Wider>(b));
  }

  void add_arithmetic() {
    this->two("+", [](T a, T b) { return a + b; });
    this->two("-", [](T a, T b) { return a - b; });
    this->two("*", product);
    this->two("/", [](T a, T b) { return a / b; });
    this->one("-", [](T z) { return -z; });
    this->one("abs", [](T z) { return T(std::hypot(z.real(), z.imag())); });
    this->one("square", [](T z) { return product(z, z); });
    this->one("reciprocal", [](T z) { return T(1) / z; });
    this->one("sgn", [](T z) {
      const R size = std::hypot(z.real(), z.imag());
      return size == 0 ? T(0) : T(z.real() / size, z.imag() / size);
    });
    this->one("real", [](T z) { return T(z.real()); });
    this->one("imag", [](T z) { return T(z.imag()); });
    this->one("conj", [](T z) { return std::conj(z); });
    this->one("arg", [](T z) { return T(std::atan2(z.imag(), z.real())); });
    this->one("isnan", [](T z) { return T(std::isnan(z.real()) || std::isnan(z.imag())); });
    this->one("isinf", [](T z) { return T(std::isinf(z.real()) || std::isinf(z.imag())); });
    this->one("isfinite",
              [](T z) { return T(std::isfinite(z.real()) && std::isfinite(z.imag())); });
  }

  void add_elementary() {
    this->one("sqrt", [](T z) { return std::sqrt(z); });
    this->one("rsqrt", [](T z) { return T(1) / std::sqrt(z); });
    this->one("exp", [](T z) { return std::exp(z); });
    this->one("exp2", [](T z) { return wider_pow(2, std::complex<Wider>(z)); });
    this->one("expm1", expm1);
    this->one("log", [](T z) { return std::log(z); });
    this->one("log2", [](T z) { return std::log(z) / R(0.693147180559945309417L); });
    this->one("log10", [](T z) { return std::log10(z); });
    this->one("log1p", log1p);
    this->two("pow", pow);
    this->one("sin", [](T z) { return std::sin(z); });
    this->one("cos", [](T z) { return std::cos(z); });
    this->one("tan", [](T z) { return std::tan(z); });
    this->one("asin", [](T z) { return std::asin(z); });
    this->one("acos", [](T z) { return std::acos(z); });
    this->one("atan", [](T z) { return std::atan(z); });
    this->one("sinh", [](T z) { return std::sinh(z); });
    this->one("cosh", [](T z) { return std::cosh(z); });
    this->one("tanh", [](T z) { return std::tanh(z); });
    this->one("asinh", [](T z) { return std::asinh(z); });
    this->one("acosh", [](T z) { return std::acosh(z); });
    this->one("atanh", [](T z) { return std::atanh(z); });
    this->one("sigmoid", sigmoid);
    this->one("silu", [](T z) { return product(z, sigmoid(z)); });
  }
};

// The functions of numbers that are computed in T; made at their first use.
template <class T>
const Functions<T>& functions_of() {
  if constexpr (std::is_integral_v<T>) {
    static const IntegerFunctions<T> table;
    return table;
  } else if constexpr (std::is_floating_point_v<T>) {
    static const FloatFunctions<T> table;
    return table;
  } else {
    static const ComplexFunctions<typename T::value_type> table;
    return table;
  }
}

// Converts 64-bit results to elements of a narrower dtype.
inline void wrap_elements(DType dtype, uint64_t* x, int64_t n) {
  const int bits = dtype == DType::Bool ? 1 : static_cast<int>(8 * item_size(dtype));
  if (bits == 64) return;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (int64_t i = 0; i < n; ++i) {
    if (bits == 1)
      x[i] = x[i] != 0;
    else
      x[i] =
          is_signed_integer(dtype) && ((x[i] >> (bits - 1)) & 1) != 0 ? x[i] | ~mask : x[i] & mask;
  }
}

}  // namespace treadle::plugin::detail

#pragma GCC visibility pop
