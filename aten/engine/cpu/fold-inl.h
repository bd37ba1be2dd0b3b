// Sums over a run of elements. Their order depends only on the number of elements: the same bits on
// every target.
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_FOLD_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_FOLD_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_FOLD_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_FOLD_INL_H_
#endif

#include <algorithm>

#include "aten/scalar/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

inline constexpr int64_t kFoldRun = 16;  // terms that a lane sums up before they go to a total

template <int64_t kLanes, class S>
HWY_INLINE S sum_by_halves(S* lanes) {
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

// Sums term(i, lanes) over n elements in 64 bytes of lanes, then halves by halves. The values of
// term in lanes behind the last element do not count. In a long sum the lanes are short sums, whose
// totals are doubles, so that its error does not grow with its length.
template <class T, class F>
HWY_INLINE T folded_sum(int64_t n, F term) {
  using V = Vec<T>;
  constexpr int64_t kFold = 64 / sizeof(T);
  constexpr int64_t kVectors = kFold / V::kLanes;
  const bool is_long = n >= kFold * kFoldRun;
  HWY_ALIGN T lanes[kFold];
  double totals[kFold];
  if (is_long) std::fill_n(totals, kFold, 0.0);
  V sums[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) sums[v] = set(T(0));
  int64_t i = 0, in_run = 0;
  for (; i + kFold <= n; i += kFold) {
    for (int64_t v = 0; v < kVectors; ++v) sums[v] = sums[v] + term(i + v * V::kLanes, V::kLanes);
    if (++in_run < kFoldRun || !is_long) continue;
    in_run = 0;
    for (int64_t v = 0; v < kVectors; ++v) {
      store(sums[v], lanes + v * V::kLanes);
      sums[v] = set(T(0));
    }
    for (int64_t l = 0; l < kFold; ++l) totals[l] += static_cast<double>(lanes[l]);
  }
  for (int64_t v = 0; v < kVectors; ++v) store(sums[v], lanes + v * V::kLanes);
  for (int64_t at = 0; i < n; i += V::kLanes, at += V::kLanes) {
    const int64_t count = std::min<int64_t>(V::kLanes, n - i);
    HWY_ALIGN T last[V::kLanes];
    store(term(i, count), last);
    for (int64_t l = 0; l < count; ++l) lanes[at + l] += last[l];
  }
  if (!is_long) return sum_by_halves<kFold>(lanes);
  for (int64_t l = 0; l < kFold; ++l) totals[l] += static_cast<double>(lanes[l]);
  return static_cast<T>(sum_by_halves<kFold>(totals));
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
