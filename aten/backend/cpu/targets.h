// Targets: the instruction sets for which vector code is compiled. Highway chooses the best one of
// the machine.
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "its/own/path.cc"
//   #include "aten/backend/cpu/targets.h"             // before any header of Highway
//   #include "hwy/foreach_target.h"
//
//   HWY_BEFORE_NAMESPACE();
//   namespace treadle::simd::HWY_NAMESPACE {          // compiled once per target
//   void scale(float* x, int64_t n, float by) { ... }
//   }
//   HWY_AFTER_NAMESPACE();
//
//   #if HWY_ONCE                                      // compiled once
//   namespace treadle::simd {
//   HWY_EXPORT(scale);
//   void scale(float* x, int64_t n, float by) { HWY_DYNAMIC_DISPATCH(scale)(x, n, by); }
//   }
//   #endif
//
// HWY_EXPORT takes one function, by its unqualified name. A file with several functions, or with
// one for several types, has a constant table of them per target and exports a function that
// returns the table. A caller that cannot afford the dispatch at each call keeps the reference in a
// static variable.
//
// x86-64 has three targets, which keep compile time bounded: SSE4 (every machine since 2010), AVX2
// and AVX-512 ("AVX3"). Other processors have the one target that all of their kind support: NEON
// on Arm, vectors of one element where Highway has no other. The length of a vector is known at
// compile time.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef HWY_HIGHWAY_INCLUDED
#error "include aten/backend/cpu/targets.h before Highway"
#endif
#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_SSE4
#define HWY_DISABLED_TARGETS (HWY_SCALAR | HWY_EMU128 | HWY_SSSE3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
// With this, Highway takes the target that the compiler may assume. It would otherwise add one with
// AES on Arm, which nothing here uses and not every machine has.
#define TOOLCHAIN_MISS_SYS_AUXV_H
#endif
// A quick build has one target (TREADLE_ONE_TARGET).
#if (defined(TREADLE_ONE_TARGET) || !defined(__x86_64__)) && !defined(HWY_COMPILE_ONLY_STATIC)
#define HWY_COMPILE_ONLY_STATIC
#endif
