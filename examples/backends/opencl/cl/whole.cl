R"CLC(
// Functions of expressions that integers and bool share, made of FN(neg) and FN(mul).
inline T FN(real)(T a) { return a; }
inline T FN(conj)(T a) { return a; }
inline T FN(imag)(T a) { return 0; }
inline T FN(floor)(T a) { return a; }
inline T FN(ceil)(T a) { return a; }
inline T FN(round)(T a) { return a; }
inline T FN(trunc)(T a) { return a; }
inline int FN(isnan)(T a) { return 0; }
inline int FN(isinf)(T a) { return 0; }
inline int FN(isfinite)(T a) { return 1; }
inline int FN(signbit)(T a) { return a < 0; }
inline T FN(abs)(T a) { return a < 0 ? FN(neg)(a) : a; }
inline T FN(square)(T a) { return FN(mul)(a, a); }
inline T FN(sign)(T a) { return (T)((a > 0) - (a < 0)); }
inline T FN(sgn)(T a) { return FN(sign)(a); }
inline T FN(relu)(T a) { return a < 0 ? (T)0 : a; }
inline T FN(maximum)(T a, T b) { return a < b ? b : a; }
inline T FN(minimum)(T a, T b) { return b < a ? b : a; }
inline T FN(fmax)(T a, T b) { return FN(maximum)(a, b); }
inline T FN(fmin)(T a, T b) { return FN(minimum)(a, b); }
inline T FN(clamp)(T x, T low, T high) { return FN(minimum)(FN(maximum)(x, low), high); }
inline T FN(nan_to_num)(T x, T nan_value, T positive, T negative) { return x; }
inline T FN(bitwise_and)(T a, T b) { return a & b; }
inline T FN(bitwise_or)(T a, T b) { return a | b; }
inline T FN(bitwise_xor)(T a, T b) { return a ^ b; }
)CLC"
