// Targets: the instruction sets for which vector code is compiled. Highway chooses the best one of
// the machine.
//
// A source that is compiled for each of them includes aten/backend/cpu/foreach_target.h.
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
#ifndef HWY_BASELINE_TARGETS
#define HWY_BASELINE_TARGETS HWY_SSE4
#endif
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
