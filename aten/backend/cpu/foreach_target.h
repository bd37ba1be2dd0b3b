// Compiles a source once for each target (aten/backend/cpu/targets.h).
//
//   #define TREADLE_TARGET_INCLUDE "its/own/path.cc"
//   #include "aten/backend/cpu/foreach_target.h"
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
// It replaces Highway's own foreach_target.h, which includes the operations of a target while it
// compiles the source for it. Here the operations of all targets come first, in one header that can
// be precompiled. A pass over the source then sets the macros of its target only.
//
// Each header of vector code is parsed once per target. Its include guard compares a macro of its
// own with TREADLE_TARGET_TOGGLE, which is defined in every other pass.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cpu/highway.h"

#ifndef TREADLE_TARGET_INCLUDE
#error "define TREADLE_TARGET_INCLUDE, the path of the source, before this header"
#endif
#if HWY_TARGETS & ~(HWY_STATIC_TARGET | HWY_AVX2 | HWY_AVX3)
#error "expected the targets AVX2 and AVX3 beside the static one"
#endif

#undef HWY_ONCE
#define HWY_ONCE 0

#if (HWY_TARGETS & HWY_AVX2) && HWY_STATIC_TARGET != HWY_AVX2
#undef HWY_TARGET
#define HWY_TARGET HWY_AVX2
#include "aten/backend/cpu/target_macros-inl.h"
#include TREADLE_TARGET_INCLUDE
#define TREADLE_TARGET_TOGGLE
#endif

#if (HWY_TARGETS & HWY_AVX3) && HWY_STATIC_TARGET != HWY_AVX3
#undef HWY_TARGET
#define HWY_TARGET HWY_AVX3
#include "aten/backend/cpu/target_macros-inl.h"
#include TREADLE_TARGET_INCLUDE
#ifdef TREADLE_TARGET_TOGGLE
#undef TREADLE_TARGET_TOGGLE
#else
#define TREADLE_TARGET_TOGGLE
#endif
#endif

// The rest of the source is compiled for the static target when this header ends.
#undef HWY_TARGET
#define HWY_TARGET HWY_STATIC_TARGET
#include "aten/backend/cpu/target_macros-inl.h"
#undef HWY_ONCE
#define HWY_ONCE 1
