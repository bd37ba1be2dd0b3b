// Targets: the instruction sets for which vector code is compiled, and the choice of one for this
// machine.
//
// Include this before any header of Highway. Three targets keep compile time bounded: SSE4 (every
// x86-64 machine since 2010), AVX2 and AVX-512 ("AVX3"). Loops over integers, bool and complex
// numbers are compiled only for the first two.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef HWY_HIGHWAY_INCLUDED
#error "include aten/backend/cpu/targets.h before Highway"
#endif
#define HWY_BASELINE_TARGETS HWY_SSE4
#define HWY_DISABLED_TARGETS (HWY_SCALAR | HWY_EMU128 | HWY_SSSE3 | HWY_AVX3_DL)
#ifdef TREADLE_ONE_TARGET  // a quick build: SSE4 stands in for the others
#define HWY_COMPILE_ONLY_STATIC
#endif

namespace treadle::simd {

#ifdef TREADLE_ONE_TARGET
namespace N_SSE4 {}
namespace N_AVX2 = N_SSE4;
namespace N_AVX3 = N_SSE4;
#endif

inline constexpr int kTargets = 3;  // SSE4, AVX2, AVX3: the order of every table by target

// Index of the best target of this machine; 0 until the library's objects are initialised.
extern int chosen_target;

// The one for this machine of what each target has: chosen(N_SSE4::f, N_AVX2::f, N_AVX3::f)(x).
template <class T>
const T& chosen(const T& sse4, const T& avx2, const T& avx3) {
  return chosen_target == 2 ? avx3 : chosen_target == 1 ? avx2 : sse4;
}

}  // namespace treadle::simd
