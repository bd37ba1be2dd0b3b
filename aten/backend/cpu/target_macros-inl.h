// The macros of HWY_TARGET: HWY_NAMESPACE, HWY_LANES and their like. Included by
// aten/backend/cpu/foreach_target.h only.
//
// Highway's header sets them where its guard and HWY_TARGET_TOGGLE agree.
//
// SPDX-License-Identifier: Apache-2.0
#undef HWY_SET_MACROS_PER_TARGET
#ifdef HWY_TARGET_TOGGLE
#define HWY_SET_MACROS_PER_TARGET
#endif
#include "hwy/ops/set_macros-inl.h"

// The namespace with this target's loops over integers, bool and complex numbers. AVX3 uses those
// of AVX2, which bounds compile time.
#undef TREADLE_NUMBERS
#if HWY_TARGET == HWY_AVX3 && (HWY_TARGETS & HWY_AVX2)
#define TREADLE_NUMBERS N_AVX2
#else
#define TREADLE_NUMBERS HWY_NAMESPACE
#endif
