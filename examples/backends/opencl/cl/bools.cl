R"CLC(
// Functions of expressions for bool, which is 0 or 1 in a byte: + is or, * is and, - is unequal.
inline T FN(add)(T a, T b) { return a | b; }
inline T FN(sub)(T a, T b) { return a != b; }
inline T FN(mul)(T a, T b) { return a & b; }
inline T FN(neg)(T a) { return a; }
inline T FN(pow)(T base, T exponent) { return base || !exponent; }
inline T FN(bitwise_not)(T a) { return !a; }
)CLC"
