R"CLC(
// Functions of expressions for float and double: T is the type, FN(name) the function's full name.
#define ONE ((T)1)
#define ZERO ((T)0)
inline T FN(abs)(T x) { return fabs(x); }
inline T FN(square)(T x) { return x * x; }
inline T FN(sqrt)(T x) { return sqrt(x); }
inline T FN(reciprocal)(T x) { return ONE / x; }
inline T FN(rsqrt)(T x) { return ONE / sqrt(x); }
inline T FN(floor)(T x) { return floor(x); }
inline T FN(ceil)(T x) { return ceil(x); }
inline T FN(round)(T x) { return rint(x); }
inline T FN(trunc)(T x) { return trunc(x); }
inline T FN(frac)(T x) { return x - trunc(x); }
inline T FN(copysign)(T x, T s) { return copysign(x, s); }
inline int FN(isnan)(T x) { return x != x; }
inline int FN(isinf)(T x) { return fabs(x) == (T)INFINITY; }
inline int FN(isfinite)(T x) { return fabs(x) < (T)INFINITY; }
inline int FN(signbit)(T x) { return copysign(ONE, x) < 0; }
inline T FN(sign)(T x) { return x == 0 ? ZERO : x != x ? x : copysign(ONE, x); }
inline T FN(sgn)(T x) { return FN(sign)(x); }
inline T FN(real)(T x) { return x; }
inline T FN(conj)(T x) { return x; }
inline T FN(imag)(T x) { return ZERO; }
inline T FN(arg)(T x) { return x != x ? x : x < 0 ? (T)M_PI : ZERO; }
inline T FN(maximum)(T a, T b) { return a != a ? a : a > b ? a : b; }
inline T FN(minimum)(T a, T b) { return a != a ? a : a < b ? a : b; }
inline T FN(fmax)(T a, T b) { return b != b || a > b ? a : b; }
inline T FN(fmin)(T a, T b) { return b != b || a < b ? a : b; }
inline T FN(clamp)(T x, T low, T high) { return FN(minimum)(FN(maximum)(x, low), high); }
inline T FN(relu)(T x) { return x < 0 ? ZERO : x; }
inline T FN(nan_to_num)(T x, T nan_value, T positive, T negative) {
  return x != x ? nan_value : x == (T)INFINITY ? positive : x == (T)-INFINITY ? negative : x;
}

inline T FN(exp)(T x) { return exp(x); }
inline T FN(exp2)(T x) { return exp2(x); }
inline T FN(expm1)(T x) { return expm1(x); }
inline T FN(log)(T x) { return log(x); }
inline T FN(log2)(T x) { return log2(x); }
inline T FN(log10)(T x) { return log10(x); }
inline T FN(log1p)(T x) { return log1p(x); }
inline T FN(sin)(T x) { return sin(x); }
inline T FN(cos)(T x) { return cos(x); }
inline T FN(tan)(T x) { return tan(x); }
inline T FN(asin)(T x) { return asin(x); }
inline T FN(acos)(T x) { return acos(x); }
inline T FN(atan)(T x) { return atan(x); }
inline T FN(atan2)(T y, T x) { return atan2(y, x); }
inline T FN(sinh)(T x) { return sinh(x); }
inline T FN(cosh)(T x) { return cosh(x); }
inline T FN(tanh)(T x) { return tanh(x); }
inline T FN(asinh)(T x) { return asinh(x); }
inline T FN(acosh)(T x) { return acosh(x); }
inline T FN(atanh)(T x) { return atanh(x); }
inline T FN(erf)(T x) { return erf(x); }
inline T FN(erfc)(T x) { return erfc(x); }
inline T FN(hypot)(T a, T b) { return hypot(a, b); }
inline T FN(nextafter)(T a, T b) { return nextafter(a, b); }
// Half turns are taken off before the product with pi is rounded.
inline T FN(sinc)(T x) {
  if (x == 0) return ONE;
  if (fabs(x) == (T)INFINITY) return ZERO;
  const T turns = rint(x), half_turns = turns * (T)0.5;
  const T sine = sin((T)M_PI * (x - turns));
  return (half_turns == floor(half_turns) ? sine : -sine) / ((T)M_PI * x);
}
// Products for everyday exponents, as on the CPU.
inline T FN(pow)(T a, T b) {
  if (b == 2) return a * a;
  if (b == 3) return a * a * a;
  if (b == 1) return a;
  return pow(a, b);
}
inline T FN(logaddexp)(T a, T b) {
  if (a == b && fabs(a) == (T)INFINITY) return a;
  return FN(maximum)(a, b) + log1p(exp(-fabs(a - b)));
}
inline T FN(logaddexp2)(T a, T b) {
  if (a == b && fabs(a) == (T)INFINITY) return a;
  return FN(maximum)(a, b) + log1p(exp2(-fabs(a - b))) * (T)M_LOG2E;
}
inline T FN(fmod)(T a, T b) { return fmod(a, b); }
// With the sign of the divisor.
inline T FN(remainder)(T a, T b) {
  const T mod = fmod(a, b);
  if (mod == 0) return copysign(mod, b);
  return (b < 0) != (mod < 0) ? mod + b : mod;
}
inline T FN(floor_divide)(T a, T b) {
  if (b == 0) return a / b;
  const T mod = fmod(a, b);
  T quotient = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) quotient -= ONE;
  if (quotient == 0) return copysign(ZERO, a / b);
  const T floored = floor(quotient);
  return quotient - floored > (T)0.5 ? floored + ONE : floored;
}
inline T FN(trunc_divide)(T a, T b) { return trunc(a / b); }

// factor / (1 + exp(-x)); the exponential is that of -|x|, which does not overflow.
inline T FN(times_sigmoid)(T factor, T x) {
  const T e = exp(-fabs(x));
  return (x < 0 ? factor * e : factor) / (ONE + e);
}
inline T FN(sigmoid)(T x) { return FN(times_sigmoid)(ONE, x); }
inline T FN(silu)(T x) { return FN(times_sigmoid)(x, x); }
// erfc, not 1 + erf: what is left of 1 below zero has all its digits.
inline T FN(gelu)(T x) { return x * (T)0.5 * erfc(x * (T)-M_SQRT1_2); }
inline T FN(gelu_tanh)(T x) {
  return FN(times_sigmoid)(x, (T)1.59576912160573071176 * (x + (T)0.044715 * x * x * x));
}
inline T FN(softplus)(T x, T beta, T threshold) {
  const T scaled = x * beta;
  return scaled > threshold ? x : log1p(exp(scaled)) / beta;
}
)CLC"
