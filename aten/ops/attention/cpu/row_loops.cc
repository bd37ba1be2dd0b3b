// The steps of softmax on a row: the largest element, exp with its sum, the division. The sum uses
// a fixed number of lanes, whatever the width of a vector, so results do not depend on the
// machine's vectors.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/attention/cpu/row_loops.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>
#include <limits>

#include "aten/engine/cpu/fold-inl.h"
#include "aten/ops/attention/cpu/row_loops.h"
#include "aten/scalar/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

template <class T>
T exp_shifted(T* x, int64_t n, T shift) {
  const Vec<T> by = set(shift);
  return folded_sum<T>(n, [&](int64_t i, int64_t lanes) {
    const Vec<T> e = exp(load_lanes(x + i, lanes) - by);
    store_lanes(e, x + i, lanes);
    return e;
  });
}

template <class T>
T largest(const T* x, int64_t n) {
  constexpr int64_t kLanes = Vec<T>::kLanes;
  const T none = -std::numeric_limits<T>::infinity();
  Vec<T> most[2] = {set(none), set(none)};
  const auto take = [](Vec<T> v, Vec<T> so_far) { return where(v > so_far, v, so_far); };
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    most[0] = take(load(x + i), most[0]);
    most[1] = take(load(x + i + kLanes), most[1]);
  }
  HWY_ALIGN T lanes[kLanes];
  store(take(most[0], most[1]), lanes);
  T result = none;
  for (const T lane : lanes) result = lane > result ? lane : result;
  for (; i < n; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

template <class T>
void divide_row(const T* x, T by, T* y, int64_t n) {
  for (int64_t i = 0; i < n; i += Vec<T>::kLanes) {
    const int64_t lanes = std::min<int64_t>(Vec<T>::kLanes, n - i);
    store_lanes(load_lanes(x + i, lanes) / set(by), y + i, lanes);
  }
}

template <class T>
inline constexpr cpu::RowLoops<T> kRowLoops = {&exp_shifted<T>, &largest<T>, &divide_row<T>};

const cpu::RowLoops<float>& float_loops() { return kRowLoops<float>; }
const cpu::RowLoops<double>& double_loops() { return kRowLoops<double>; }

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(float_loops);
HWY_EXPORT(double_loops);

}  // namespace treadle::simd

namespace treadle::cpu {

template <>
const RowLoops<float>& row_loops() {
  using namespace simd;
  static const RowLoops<float>& loops = HWY_DYNAMIC_DISPATCH(float_loops)();
  return loops;
}
template <>
const RowLoops<double>& row_loops() {
  using namespace simd;
  static const RowLoops<double>& loops = HWY_DYNAMIC_DISPATCH(double_loops)();
  return loops;
}

}  // namespace treadle::cpu
#endif  // HWY_ONCE
