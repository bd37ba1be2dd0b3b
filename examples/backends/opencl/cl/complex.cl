R"CLC(
// Functions of expressions for complex numbers, (real, imaginary) pairs: R is the type of a part, T
// of the pair. Arithmetic is in R; functions are computed in double and rounded once.
typedef double2 Z;
inline Z z_of(T a) { return (Z)((double)a.x, (double)a.y); }
inline T of_z(Z a) { return (T)((R)a.x, (R)a.y); }
inline Z z_mul(Z a, Z b) { return (Z)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
// Scaled by the larger part of the divisor, so that squares do not overflow.
inline Z z_div(Z a, Z b) {
  if (fabs(b.x) >= fabs(b.y)) {
    if (b.x == 0) return (Z)(a.x / fabs(b.x), a.y / fabs(b.y));
    const double ratio = b.y / b.x, scale = 1 / (b.x + b.y * ratio);
    return (Z)((a.x + a.y * ratio) * scale, (a.y - a.x * ratio) * scale);
  }
  const double ratio = b.x / b.y, scale = 1 / (b.x * ratio + b.y);
  return (Z)((a.x * ratio + a.y) * scale, (a.y * ratio - a.x) * scale);
}
inline Z z_turn(Z a) { return (Z)(-a.y, a.x); }      // i a
inline Z z_turn_back(Z a) { return (Z)(a.y, -a.x); }  // -i a

inline Z z_sqrt(Z a) {
  if (a.x == 0 && a.y == 0) return (Z)(0, a.y);
  if (fabs(a.y) == INFINITY) return (Z)(INFINITY, a.y);
  if (a.x == INFINITY) return (Z)(a.x, a.y != a.y ? a.y : copysign(0.0, a.y));
  if (a.x == -INFINITY)
    return (Z)(a.y != a.y ? a.y : 0.0, copysign((double)INFINITY, a.y));
  const int large = fabs(a.x) > 1e300 || fabs(a.y) > 1e300;
  const int small = fabs(a.x) < 1e-290 && fabs(a.y) < 1e-290;
  if (large) a *= 0.0625;
  if (small) a *= 0x1p108;
  const double t = sqrt((fabs(a.x) + hypot(a.x, a.y)) * 0.5);
  Z root = a.x >= 0 ? (Z)(t, a.y / (2 * t)) : (Z)(fabs(a.y) / (2 * t), copysign(t, a.y));
  return large ? root * 4 : small ? root * 0x1p-54 : root;
}
inline Z z_exp(Z a) {
  if (a.y == 0) return (Z)(exp(a.x), a.y);
  if (a.x == -INFINITY && !isfinite(a.y)) return (Z)(0, 0);
  if (a.x == INFINITY && !isfinite(a.y)) return (Z)(INFINITY, NAN);
  if (a.x > 709 && a.x < 1500) {  // the size overflows before its parts do
    const double size = exp(a.x / 2);
    return (Z)(size * cos(a.y) * size, size * sin(a.y) * size);
  }
  const double size = exp(a.x);
  return (Z)(size * cos(a.y), size * sin(a.y));
}
inline double z_log_abs(Z a) {
  const double x = fabs(a.x), y = fabs(a.y), larger = fmax(x, y), smaller = fmin(x, y);
  const double size = hypot(x, y);
  if (size > 0.7 && size < 1.5) return 0.5 * log1p((larger - 1) * (larger + 1) + smaller * smaller);
  if (size == INFINITY && larger < INFINITY)
    return log(hypot(x * 0.5, y * 0.5)) + M_LN2;
  return log(size);
}
inline Z z_log(Z a) { return (Z)(z_log_abs(a), atan2(a.y, a.x)); }
inline Z z_sinh(Z a) {
  if (a.y == 0) return (Z)(sinh(a.x), a.y);
  if (a.x == 0) return (Z)(a.x, sin(a.y));
  return (Z)(sinh(a.x) * cos(a.y), cosh(a.x) * sin(a.y));
}
inline Z z_cosh(Z a) {
  if (a.y == 0) return (Z)(cosh(a.x), a.x * a.y == 0 ? a.x * a.y : copysign(0.0, a.x * a.y));
  if (a.x == 0) return (Z)(cos(a.y), a.x * copysign(1.0, a.y));
  return (Z)(cosh(a.x) * cos(a.y), sinh(a.x) * sin(a.y));
}
inline Z z_tanh(Z a) {
  if (fabs(a.x) > 20)
    return (Z)(copysign(1.0, a.x),
               isfinite(a.y) ? 4 * sin(a.y) * cos(a.y) * exp(-2 * fabs(a.x)) : 0.0);
  const double t = tan(a.y), beta = 1 + t * t, s = sinh(a.x), rho = sqrt(1 + s * s);
  if (isinf(t)) return (Z)(rho / s, 1 / t);
  const double below = 1 + beta * s * s;
  return (Z)(beta * rho * s / below, t / below);
}
// After Kahan: products of square roots, whose signs of zero choose the side of a cut.
inline Z z_asin(Z a) {
  const Z minus = z_sqrt((Z)(1 - a.x, -a.y)), plus = z_sqrt((Z)(1 + a.x, a.y));
  return (Z)(atan2(a.x, minus.x * plus.x - minus.y * plus.y),
             asinh(minus.x * plus.y - minus.y * plus.x));
}
inline Z z_acos(Z a) {
  const Z minus = z_sqrt((Z)(1 - a.x, -a.y)), plus = z_sqrt((Z)(1 + a.x, a.y));
  return (Z)(2 * atan2(minus.x, plus.x), asinh(plus.x * minus.y - plus.y * minus.x));
}
inline Z z_acosh(Z a) {
  const Z minus = z_sqrt((Z)(a.x - 1, a.y)), plus = z_sqrt((Z)(a.x + 1, a.y));
  return (Z)(asinh(minus.x * plus.x + minus.y * plus.y), 2 * atan2(minus.y, plus.x));
}
inline Z z_atanh(Z a) {
  const double gap = 1 - a.x;
  return (Z)(0.25 * log1p(4 * a.x / (gap * gap + a.y * a.y)),
             0.5 * atan2(2 * a.y, gap * (1 + a.x) - a.y * a.y));
}
inline Z z_sin(Z a) { return z_turn_back(z_sinh(z_turn(a))); }
inline Z z_cos(Z a) { return z_cosh(z_turn(a)); }
inline Z z_sigmoid(Z a) {
  if (a.x < -1) {
    const Z e = z_exp(a);
    return z_div(e, (Z)(1 + e.x, e.y));
  }
  const Z t = z_tanh(a * 0.5);
  return (Z)((1 + t.x) * 0.5, t.y * 0.5);
}
inline Z z_log1p(Z a) {
  const double x = a.x + 1;
  if (fabs(a.x) > 0.5 || fabs(a.y) > 0.5) return z_log((Z)(x, a.y));
  return (Z)(0.5 * log1p(a.x * (2 + a.x) + a.y * a.y), atan2(a.y, x));
}
inline Z z_expm1(Z a) {
  if (isinf(a.x) && !isfinite(a.y))
    return a.x < 0 ? (Z)(-1, copysign(0.0, a.y)) : (Z)(a.x, NAN);
  const double half_sine = sin(a.y * 0.5);
  return (Z)(expm1(a.x) * cos(a.y) - 2 * half_sine * half_sine,
             a.y == 0 ? a.y : exp(a.x) * sin(a.y));
}
inline Z z_sinc(Z a) {
  if (a.x == 0 && a.y == 0) return (Z)(1, 0);
  const double turns = rint(a.x);
  const Z sine = z_sin((Z)(M_PI * (a.x - turns), M_PI * a.y));
  return z_div(fmod(turns, 2.0) == 0 ? sine : -sine, a * M_PI);
}
inline Z z_pow(Z a, Z b) {
  if (b.y == 0) {
    if (b.x == 2) return z_mul(a, a);
    if (b.x == 3) return z_mul(z_mul(a, a), a);
    if (b.x == 1) return a;
    if (b.x == 0) return (Z)(1, 0);
    if (b.x == 0.5) return z_sqrt(a);
    if (b.x == -1) return z_div((Z)(1, 0), a);
  }
  if (a.x == 0 && a.y == 0) return b.x > 0 ? (Z)(0, 0) : (Z)(NAN, NAN);
  return z_exp(z_mul(b, z_log(a)));
}

inline T FN(add)(T a, T b) { return a + b; }
inline T FN(sub)(T a, T b) { return a - b; }
inline T FN(neg)(T a) { return -a; }
inline T FN(mul)(T a, T b) { return (T)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
inline T FN(div)(T a, T b) { return of_z(z_div(z_of(a), z_of(b))); }
inline int FN(eq)(T a, T b) { return a.x == b.x && a.y == b.y; }
inline int FN(ne)(T a, T b) { return !FN(eq)(a, b); }
inline int FN(cast_bool)(T a) { return a.x != 0 || a.y != 0; }
inline T FN(real)(T a) { return (T)(a.x, 0); }
inline T FN(imag)(T a) { return (T)(a.y, 0); }
inline T FN(conj)(T a) { return (T)(a.x, -a.y); }
inline T FN(abs)(T a) { return (T)(hypot(a.x, a.y), 0); }
inline T FN(arg)(T a) { return (T)(atan2(a.y, a.x), 0); }
inline T FN(square)(T a) { return FN(mul)(a, a); }
inline T FN(reciprocal)(T a) { return FN(div)((T)(1, 0), a); }
inline T FN(sgn)(T a) {
  const R size = hypot(a.x, a.y);
  return size == 0 ? (T)(0, 0) : (T)(a.x / size, a.y / size);
}
inline int FN(isnan)(T a) { return a.x != a.x || a.y != a.y; }
inline int FN(isinf)(T a) { return fabs(a.x) == (R)INFINITY || fabs(a.y) == (R)INFINITY; }
inline int FN(isfinite)(T a) { return fabs(a.x) < (R)INFINITY && fabs(a.y) < (R)INFINITY; }
inline T FN(sqrt)(T a) { return of_z(z_sqrt(z_of(a))); }
inline T FN(rsqrt)(T a) { return of_z(z_div((Z)(1, 0), z_sqrt(z_of(a)))); }
inline T FN(exp)(T a) { return of_z(z_exp(z_of(a))); }
inline T FN(exp2)(T a) { return of_z(z_exp(z_of(a) * M_LN2)); }
inline T FN(expm1)(T a) { return of_z(z_expm1(z_of(a))); }
inline T FN(log)(T a) { return of_z(z_log(z_of(a))); }
inline T FN(log2)(T a) { return of_z(z_log(z_of(a)) / M_LN2); }
inline T FN(log10)(T a) { return of_z(z_log(z_of(a)) / M_LN10); }
inline T FN(log1p)(T a) { return of_z(z_log1p(z_of(a))); }
inline T FN(sin)(T a) { return of_z(z_sin(z_of(a))); }
inline T FN(cos)(T a) { return of_z(z_cos(z_of(a))); }
inline T FN(tan)(T a) { return of_z(z_turn_back(z_tanh(z_turn(z_of(a))))); }
inline T FN(asin)(T a) { return of_z(z_asin(z_of(a))); }
inline T FN(acos)(T a) { return of_z(z_acos(z_of(a))); }
inline T FN(atan)(T a) { return of_z(z_turn_back(z_atanh(z_turn(z_of(a))))); }
inline T FN(sinh)(T a) { return of_z(z_sinh(z_of(a))); }
inline T FN(cosh)(T a) { return of_z(z_cosh(z_of(a))); }
inline T FN(tanh)(T a) { return of_z(z_tanh(z_of(a))); }
inline T FN(asinh)(T a) { return of_z(z_turn_back(z_asin(z_turn(z_of(a))))); }
inline T FN(acosh)(T a) { return of_z(z_acosh(z_of(a))); }
inline T FN(atanh)(T a) { return of_z(z_atanh(z_of(a))); }
inline T FN(sinc)(T a) { return of_z(z_sinc(z_of(a))); }
inline T FN(sigmoid)(T a) { return of_z(z_sigmoid(z_of(a))); }
inline T FN(silu)(T a) { return of_z(z_mul(z_of(a), z_sigmoid(z_of(a)))); }
inline T FN(pow)(T a, T b) { return of_z(z_pow(z_of(a), z_of(b))); }
)CLC"
