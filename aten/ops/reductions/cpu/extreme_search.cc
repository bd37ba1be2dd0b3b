// The search for an extreme element: first the extreme of each block, by vectors, then its position
// in the block that holds it. A block is read a second time only while it is in the cache.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/reductions/cpu/extreme_search.cc"
#include "aten/ops/reductions/cpu/extreme_search.h"

#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "hwy/highway.h"

#ifndef TREADLE_ATEN_CPU_EXTREME_SEARCH_TABLE
#define TREADLE_ATEN_CPU_EXTREME_SEARCH_TABLE
namespace treadle::simd {

template <class T>
using PositionOfExtreme = int64_t (*)(const T* values, int64_t count, bool greatest);

// The searches of one target, by type.
using ExtremeSearches =
    std::tuple<PositionOfExtreme<uint8_t>, PositionOfExtreme<uint16_t>, PositionOfExtreme<uint32_t>,
               PositionOfExtreme<uint64_t>, PositionOfExtreme<int8_t>, PositionOfExtreme<int16_t>,
               PositionOfExtreme<int32_t>, PositionOfExtreme<int64_t>, PositionOfExtreme<float>,
               PositionOfExtreme<double>>;

}  // namespace treadle::simd
#endif

// ---- once per target ----
HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T, bool kGreatest>
struct ExtremeSearch {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr int64_t kLanes = HWY_LANES(T);
  static constexpr int64_t kBlock = 4096;
  static constexpr bool kFloating = std::is_floating_point_v<T>;

  static bool better(T a, T b) { return kGreatest ? a > b : a < b; }
  static HWY_INLINE V best_of(V a, V b) { return kGreatest ? hn::Max(a, b) : hn::Min(a, b); }

  // Not by comparison with itself, because Ne() of a NaN depends on the target's instruction.
  static HWY_INLINE hn::Mask<D> is_nan(V v) {
    if constexpr (kFloating)
      return hn::IsNaN(v);
    else
      return hn::FirstN(D(), 0);
  }

  // The first element that is NaN, or equals `value`; the last if none is, as another thread may
  // have changed the elements since.
  static int64_t find(const T* values, int64_t count, bool nan, T value) {
    const D d;
    const V wanted = hn::Set(d, value);
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      const V v = hn::LoadU(d, values + i);
      const auto found = nan ? is_nan(v) : hn::Eq(v, wanted);
      const intptr_t lane = hn::FindFirstTrue(d, found);
      if (lane >= 0) return i + lane;
    }
    for (; i < count; ++i) {
      if (nan ? values[i] != values[i] : values[i] == value) return i;
    }
    return count - 1;
  }

  // The extreme of a block, and whether a NaN is in it, which then may be missing from the extreme.
  static T extreme(const T* values, int64_t count, bool* nan) {
    const D d;
    T best = values[0];
    *nan = best != best;
    int64_t i = 0;
    if (count >= 4 * kLanes) {
      V lanes[4];
      auto nans = hn::FirstN(d, 0);
      for (int k = 0; k < 4; ++k) lanes[k] = hn::Set(d, best);
      for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
        V v[4];
        for (int k = 0; k < 4; ++k) v[k] = hn::LoadU(d, values + i + k * kLanes);
        for (int k = 0; k < 4; ++k) lanes[k] = best_of(lanes[k], v[k]);
        if constexpr (kFloating) {
          for (int k = 0; k < 4; ++k) nans = hn::Or(nans, is_nan(v[k]));
        }
      }
      const V all = best_of(best_of(lanes[0], lanes[1]), best_of(lanes[2], lanes[3]));
      HWY_ALIGN T out[kLanes];
      hn::Store(all, d, out);
      for (const T value : out) {
        if (better(value, best)) best = value;
      }
      *nan = *nan || !hn::AllFalse(d, nans);
    }
    for (; i < count; ++i) {
      if (better(values[i], best)) best = values[i];
      *nan = *nan || values[i] != values[i];
    }
    return best;
  }

  static int64_t position(const T* values, int64_t count) {
    T best = values[0];
    int64_t block = 0;
    for (int64_t first = 0; first < count; first += kBlock) {
      const int64_t n = std::min(kBlock, count - first);
      bool nan = false;
      const T value = extreme(values + first, n, &nan);
      if (nan) return first + find(values + first, n, true, value);
      if (better(value, best)) {
        best = value;
        block = first;
      }
    }
    return block + find(values + block, count - block, false, best);
  }
};

template <class T>
int64_t position_of_extreme(const T* values, int64_t count, bool greatest) {
  return greatest ? ExtremeSearch<T, true>::position(values, count)
                  : ExtremeSearch<T, false>::position(values, count);
}

template <class... Ts>
constexpr std::tuple<PositionOfExtreme<Ts>...> searches_of(std::tuple<PositionOfExtreme<Ts>...>*) {
  return {&position_of_extreme<Ts>...};
}
const ExtremeSearches& extreme_searches() {
  static constexpr ExtremeSearches searches = searches_of(static_cast<ExtremeSearches*>(nullptr));
  return searches;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

// ---- once ----
#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(extreme_searches);

template <class T>
int64_t position_of_extreme(const T* values, int64_t count, bool greatest) {
  return std::get<PositionOfExtreme<T>>(HWY_DYNAMIC_DISPATCH(extreme_searches)())(values, count,
                                                                                  greatest);
}

template int64_t position_of_extreme(const uint8_t*, int64_t, bool);
template int64_t position_of_extreme(const uint16_t*, int64_t, bool);
template int64_t position_of_extreme(const uint32_t*, int64_t, bool);
template int64_t position_of_extreme(const uint64_t*, int64_t, bool);
template int64_t position_of_extreme(const int8_t*, int64_t, bool);
template int64_t position_of_extreme(const int16_t*, int64_t, bool);
template int64_t position_of_extreme(const int32_t*, int64_t, bool);
template int64_t position_of_extreme(const int64_t*, int64_t, bool);
template int64_t position_of_extreme(const float*, int64_t, bool);
template int64_t position_of_extreme(const double*, int64_t, bool);

}  // namespace treadle::simd
#endif  // HWY_ONCE
