R"CLC(
// The beginning of every program: the rounding of each operation is its own, as on the CPU, and
// conversions between dtypes are defined for every value.
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF

#define TR_PASTE(a, b) a##b
#define TR_JOIN(a, b) TR_PASTE(a, b)

typedef global uchar* tr_bytes;

// A floating number as a 64-bit integer, saturating; narrower integers then wrap.
inline long tr_long(double v) {
  if (v >= 9223372036854775808.0) return LONG_MAX;
  if (v >= -9223372036854775808.0) return (long)v;
  return LONG_MIN;
}
inline ulong tr_ulong(double v) {
  if (v >= 9223372036854775808.0)
    return v < 18446744073709551616.0 ? (ulong)v : ULONG_MAX;
  return (ulong)tr_long(v);
}

inline float tr_from_f16(ushort bits) {
  private ushort one = bits;
  return vload_half(0, (const private half*)&one);
}
inline ushort tr_to_f16(float v) {
  private ushort one;
  vstore_half_rte(v, 0, (private half*)&one);
  return one;
}
inline float tr_from_bf16(ushort bits) { return as_float((uint)bits << 16); }
inline ushort tr_to_bf16(float v) {
  const uint u = as_uint(v);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (ushort)((u >> 16) | 0x40u);
  return (ushort)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
)CLC"
