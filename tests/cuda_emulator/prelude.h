// The names that the compiler of generated kernels has built in, for g++ without a standard
// library; and how the emulator calls such a kernel (nvrtc.cc).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/cuda_emulator/builtins.h"

using size_t = decltype(sizeof(0));

#define __device__
#define __global__
#define __host__
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct EmulatedIndex {
  unsigned x, y, z;
};
namespace treadle::cuda::emulator {
extern EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;
void meet_block();
}  // namespace treadle::cuda::emulator
using treadle::cuda::emulator::blockDim;
using treadle::cuda::emulator::blockIdx;
using treadle::cuda::emulator::gridDim;
using treadle::cuda::emulator::threadIdx;

inline void __syncthreads() { treadle::cuda::emulator::meet_block(); }
inline unsigned atomicExch(unsigned* at, unsigned value) {
  const unsigned before = *at;
  *at = value;
  return before;
}

extern "C" void* memcpy(void*, const void*, size_t) noexcept;
namespace std {
using ::memcpy;
}

#define TREADLE_MATH(name)                  \
  extern "C" double name(double) noexcept;  \
  extern "C" float name##f(float) noexcept; \
  inline float name(float x) noexcept { return name##f(x); }
TREADLE_MATH(acos)
TREADLE_MATH(acosh)
TREADLE_MATH(asin)
TREADLE_MATH(asinh)
TREADLE_MATH(atan)
TREADLE_MATH(atanh)
TREADLE_MATH(ceil)
TREADLE_MATH(cos)
TREADLE_MATH(cosh)
TREADLE_MATH(erf)
TREADLE_MATH(erfc)
TREADLE_MATH(exp)
TREADLE_MATH(exp2)
TREADLE_MATH(expm1)
TREADLE_MATH(fabs)
TREADLE_MATH(floor)
TREADLE_MATH(j0)
TREADLE_MATH(j1)
TREADLE_MATH(lgamma)
TREADLE_MATH(log)
TREADLE_MATH(log10)
TREADLE_MATH(log1p)
TREADLE_MATH(log2)
TREADLE_MATH(logb)
TREADLE_MATH(nearbyint)
TREADLE_MATH(rint)
TREADLE_MATH(round)
TREADLE_MATH(sin)
TREADLE_MATH(sinh)
TREADLE_MATH(sqrt)
TREADLE_MATH(tan)
TREADLE_MATH(tanh)
TREADLE_MATH(tgamma)
TREADLE_MATH(trunc)
TREADLE_MATH(y0)
TREADLE_MATH(y1)
#undef TREADLE_MATH
#define TREADLE_MATH(name)                         \
  extern "C" double name(double, double) noexcept; \
  extern "C" float name##f(float, float) noexcept; \
  inline float name(float x, float y) noexcept { return name##f(x, y); }
TREADLE_MATH(atan2)
TREADLE_MATH(copysign)
TREADLE_MATH(fmax)
TREADLE_MATH(fmin)
TREADLE_MATH(fmod)
TREADLE_MATH(hypot)
TREADLE_MATH(nextafter)
TREADLE_MATH(pow)
TREADLE_MATH(remainder)
#undef TREADLE_MATH
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
inline float fma(float x, float y, float z) noexcept { return fmaf(x, y, z); }
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
inline float ldexp(float x, int e) noexcept { return ldexpf(x, e); }
extern "C" double frexp(double, int*) noexcept;
extern "C" float frexpf(float, int*) noexcept;
inline float frexp(float x, int* e) noexcept { return frexpf(x, e); }
#define TREADLE_QUESTION(name)                                        \
  inline bool name(double x) noexcept { return __builtin_##name(x); } \
  inline bool name(float x) noexcept { return __builtin_##name(x); }
TREADLE_QUESTION(isfinite)
TREADLE_QUESTION(isinf)
TREADLE_QUESTION(isnan)
TREADLE_QUESTION(signbit)
#undef TREADLE_QUESTION
extern "C" int abs(int) noexcept;
inline long long abs(long long v) noexcept { return v < 0 ? -v : v; }
inline double abs(double x) noexcept { return __builtin_fabs(x); }
inline float abs(float x) noexcept { return __builtin_fabsf(x); }
#define TREADLE_EXTREMES(T)                        \
  inline T max(T a, T b) { return a < b ? b : a; } \
  inline T min(T a, T b) { return b < a ? b : a; }
TREADLE_EXTREMES(int)
TREADLE_EXTREMES(unsigned)
TREADLE_EXTREMES(long long)
TREADLE_EXTREMES(unsigned long long)
TREADLE_EXTREMES(float)
TREADLE_EXTREMES(double)
#undef TREADLE_EXTREMES

// A kernel's parameters, and a call with as many addresses of arguments.
template <int... i>
struct EmulatedPlaces {};
template <class Kernel>
struct EmulatedCall;
template <class... Parameters>
struct EmulatedCall<void(Parameters...)> {
  static constexpr int count = sizeof...(Parameters);
  static constexpr size_t sizes[] = {sizeof(Parameters)..., 0};
  template <int... i>
  static void call(void (*kernel)(Parameters...), void** arguments, EmulatedPlaces<i...>) {
    kernel(*static_cast<Parameters*>(arguments[i])...);
  }
  static void call(void (*kernel)(Parameters...), void** arguments) {
    call(kernel, arguments, EmulatedPlaces<__integer_pack(sizeof...(Parameters))...>());
  }
};
#define TREADLE_EMULATED_KERNEL(kernel)                                              \
  extern "C" {                                                                       \
  extern const int emulated_count = EmulatedCall<decltype(kernel)>::count;           \
  extern const size_t* const emulated_sizes = EmulatedCall<decltype(kernel)>::sizes; \
  extern const char* const emulated_name = #kernel;                                  \
  void emulated_call(void** arguments) {                                             \
    EmulatedCall<decltype(kernel)>::call(&kernel, arguments);                        \
  }                                                                                  \
  }
