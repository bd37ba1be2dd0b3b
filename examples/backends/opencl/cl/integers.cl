R"CLC(
// Functions of expressions for integers: T is the type, U the unsigned one of its width, W the one
// that arithmetic wraps in (uint where C would promote to int), IS_SIGNED 0 or 1. A division by
// zero leaves its mark at *fault, which the host turns into an error.
#define BITS ((T)(8 * sizeof(T)))
inline T FN(add)(T a, T b) { return (T)((W)a + (W)b); }
inline T FN(sub)(T a, T b) { return (T)((W)a - (W)b); }
inline T FN(mul)(T a, T b) { return (T)((W)a * (W)b); }
inline T FN(neg)(T a) { return (T)((W)0 - (W)a); }
inline T FN(pow)(T base, T exponent) {
  if (exponent < 0) {
    if (base == 1) return base;
    if (base == (T)-1) return exponent % 2 ? (T)-1 : (T)1;
    return 0;
  }
  T result = 1;
  for (U e = (U)exponent; e != 0; e = (U)(e >> 1)) {
    if (e & 1) result = FN(mul)(result, base);
    base = FN(mul)(base, base);
  }
  return result;
}
inline T FN(bitwise_not)(T a) { return (T)~a; }
inline T FN(shift_left)(T a, T b) { return b < 0 || b >= BITS ? (T)0 : (T)((W)a << b); }
inline T FN(shift_right)(T a, T b) {
  if (b < 0 || b >= BITS) return IS_SIGNED ? (T)(a >> (BITS - 1)) : (T)0;
  return (T)(a >> b);
}
#define WRAPS(a, b) (IS_SIGNED && (b) == (T)-1)
inline T FN(trunc_divide)(T a, T b, global long* fault) {
  if (b == 0) { *fault = 1; return 0; }
  return WRAPS(a, b) ? FN(neg)(a) : (T)(a / b);
}
inline T FN(floor_divide)(T a, T b, global long* fault) {
  if (b == 0) { *fault = 2; return 0; }
  if (WRAPS(a, b)) return FN(neg)(a);
  const T quotient = (T)(a / b), rest = (T)(a % b);
  return (T)(quotient - (T)(rest != 0 && (rest < 0) != (b < 0)));
}
inline T FN(fmod)(T a, T b, global long* fault) {
  if (b == 0) { *fault = 3; return 0; }
  return WRAPS(a, b) ? (T)0 : (T)(a % b);
}
inline T FN(remainder)(T a, T b, global long* fault) {
  if (b == 0) { *fault = 4; return 0; }
  if (WRAPS(a, b)) return 0;
  const T rest = (T)(a % b);
  return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;
}
inline T FN(gcd)(T a, T b) {
  U x = (U)(a < 0 ? FN(neg)(a) : a), y = (U)(b < 0 ? FN(neg)(b) : b);
  while (y != 0) {
    const U rest = (U)(x % y);
    x = y;
    y = rest;
  }
  return (T)x;
}
inline T FN(lcm)(T a, T b) {
  const T divisor = FN(gcd)(a, b);
  if (divisor == 0) return divisor;
  const U part = (U)((U)(a < 0 ? FN(neg)(a) : a) / (U)divisor);
  const T product = FN(mul)((T)part, b);
  return product < 0 ? FN(neg)(product) : product;
}
)CLC"
