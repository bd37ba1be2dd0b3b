#if defined(TREADLE_ATEN_CPU_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_MATH_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_MATH_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_MATH_INL_H_
#endif
#include "aten/cpu/simd/vec-inl.h"
#include "hwy/contrib/math/math-inl.h"
HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {
template <class T> HWY_INLINE Vec<T> exp(Vec<T> x) { return {hn::Exp(Tag<T>(), x.raw)}; }
}
HWY_AFTER_NAMESPACE();
#endif
