// Sums over a run of elements whose order depends on the number of elements only: the same bits on
// every target.
#if defined(TREADLE_ATEN_CPU_SIMD_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_FOLD_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_FOLD_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_FOLD_INL_H_
#endif

#include <algorithm>

#include "aten/cpu/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// Sums term(i, lanes) over n elements in 64 bytes of lanes, then halves by halves. What term gives
// in lanes behind the last element does not count.
template <class T, class F>
HWY_INLINE T folded_sum(int64_t n, F term) {
  using V = Vec<T>;
  constexpr int64_t kFold = 64 / sizeof(T);
  constexpr int64_t kVectors = kFold / V::kLanes;
  V sums[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) sums[v] = set(T(0));
  int64_t i = 0;
  for (; i + kFold <= n; i += kFold) {
    for (int64_t v = 0; v < kVectors; ++v) sums[v] = sums[v] + term(i + v * V::kLanes, V::kLanes);
  }
  HWY_ALIGN T lanes[kFold];
  for (int64_t v = 0; v < kVectors; ++v) store(sums[v], lanes + v * V::kLanes);
  for (int64_t at = 0; i < n; i += V::kLanes, at += V::kLanes) {
    const int64_t count = std::min<int64_t>(V::kLanes, n - i);
    HWY_ALIGN T last[V::kLanes];
    store(term(i, count), last);
    for (int64_t l = 0; l < count; ++l) lanes[at + l] += last[l];
  }
  for (int64_t half = kFold / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
