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
#include <array>

#include "aten/scalar/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

inline constexpr int64_t kFoldRun = 16;  // terms that a lane sums up before they go to a total
template <class T>
inline constexpr int64_t kFoldLanes = 64 / sizeof(T);

// The lanes of a vector, lane l added to lane l + half, and so on.
template <class D>
HWY_INLINE hn::TFromD<D> sum_by_halves(D d, hn::VFromD<D> v) {
  if constexpr (hn::MaxLanes(d) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return sum_by_halves(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
template <int64_t kVectors, class T>
HWY_INLINE T sum_by_halves(Vec<T>* lanes) {
  for (int64_t half = kVectors / 2; half > 0; half /= 2) {
    for (int64_t v = 0; v < half; ++v) lanes[v] = lanes[v] + lanes[v + half];
  }
  return sum_by_halves(Tag<T>(), lanes[0].raw);
}

// totals[l] += v[l], for the lanes l of v.
template <class T>
HWY_INLINE void add_lanes(Vec<double>* totals, Vec<T> v) {
  const Tag<double> wide;
  if constexpr (std::is_same_v<T, double>) {
    totals[0] = totals[0] + v;
  } else if constexpr (Vec<T>::kLanes == Vec<double>::kLanes) {
    totals[0] = totals[0] + Vec<double>{hn::PromoteTo(wide, v.raw)};
  } else {
    const hn::Half<Tag<T>> half;
    totals[0] = totals[0] + Vec<double>{hn::PromoteTo(wide, hn::LowerHalf(half, v.raw))};
    totals[1] = totals[1] + Vec<double>{hn::PromoteTo(wide, hn::UpperHalf(half, v.raw))};
  }
}

// kSums sums over n elements. term(i, lanes) is an array of kSums vectors: the terms of elements
// i, i + 1, ..., of which `lanes` count. The lanes of a sum are 64 bytes, which are added by halves
// at the end. In a long sum they are short sums, whose totals are doubles, so that its error does
// not grow with its length. If Total is double, a short sum's lanes are also added as doubles.
template <class T, class Total, size_t kSums, class F>
HWY_INLINE std::array<Total, kSums> folded_sums(int64_t n, F term) {
  using V = Vec<T>;
  constexpr int64_t kLanes = V::kLanes, kVectors = kFoldLanes<T> / kLanes;
  constexpr int64_t kWide = kFoldLanes<T> / Vec<double>::kLanes;
  constexpr int64_t kRun = kFoldLanes<T> * kFoldRun;
  V sums[kSums][kVectors];
  Vec<double> totals[kSums][kWide];
  const auto begin_run = [&]() HWY_ATTR {
    for (auto& sum : sums) std::fill_n(sum, kVectors, set(T(0)));
  };
  const auto end_run = [&]() HWY_ATTR {
    for (size_t k = 0; k < kSums; ++k) {
      for (int64_t v = 0; v < kVectors; ++v)
        add_lanes(totals[k] + v * kWide / kVectors, sums[k][v]);
    }
  };
  const auto add_whole = [&](int64_t i, int64_t v) HWY_ATTR {
    const std::array<V, kSums> terms = term(i + v * kLanes, kLanes);
    for (size_t k = 0; k < kSums; ++k) sums[k][v] = sums[k][v] + terms[k];
  };
  begin_run();
  for (auto& total : totals) std::fill_n(total, kWide, set(0.0));
  int64_t i = 0;
  while (i + kRun <= n) {
    for (const int64_t end = i + kRun; i < end; i += kFoldLanes<T>) {
      for (int64_t v = 0; v < kVectors; ++v) add_whole(i, v);
    }
    end_run();
    begin_run();
  }
  for (; i + kFoldLanes<T> <= n; i += kFoldLanes<T>) {
    for (int64_t v = 0; v < kVectors; ++v) add_whole(i, v);
  }
  for (int64_t v = 0; v < kVectors; ++v) {
    const int64_t left = n - i - v * kLanes;
    if (left >= kLanes) {
      add_whole(i, v);
    } else if (left > 0) {
      const std::array<V, kSums> terms = term(i + v * kLanes, left);
      const Mask<T> counts{hn::FirstN(Tag<T>(), static_cast<size_t>(left))};
      for (size_t k = 0; k < kSums; ++k)
        sums[k][v] = where(counts, sums[k][v] + terms[k], sums[k][v]);
    }
  }
  std::array<Total, kSums> result;
  if (std::is_same_v<T, Total> && n < kRun) {
    for (size_t k = 0; k < kSums; ++k)
      result[k] = static_cast<Total>(sum_by_halves<kVectors>(sums[k]));
    return result;
  }
  end_run();
  for (size_t k = 0; k < kSums; ++k)
    result[k] = static_cast<Total>(sum_by_halves<kWide>(totals[k]));
  return result;
}

// The sum of one term, which is a vector.
template <class T, class Total = T, class F>
HWY_INLINE Total folded_sum(int64_t n, F term) {
  return folded_sums<T, Total, 1>(n, [&](int64_t i, int64_t lanes) HWY_ATTR {
    return std::array<Vec<T>, 1>{term(i, lanes)};
  })[0];
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
