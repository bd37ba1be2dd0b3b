// Signs of values that must not be negative, gathered without branches: last - entry, entry + wrap.
// The multiplication of an entry out of range may overflow, which vectors define.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/indexing/cpu/entry_bounds.cc"
#include "aten/backend/cpu/foreach_target.h"

#include "aten/ops/indexing/cpu/entry_bounds.h"
#include "aten/scalar/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

using D = Tag<int64_t>;
using Entries = hn::Vec<D>;
constexpr int64_t kLanes = HWY_LANES(int64_t);

struct Bounds {
  Bounds(int64_t size, int64_t wrap)
      : last(hn::Set(D(), size - 1)), shift(hn::Set(D(), wrap)), signs(hn::Zero(D())) {}

  HWY_INLINE void look_at(Entries entries) {
    signs = hn::Or(signs, hn::Or(hn::Sub(last, entries), hn::Add(entries, shift)));
  }
  HWY_INLINE bool held() const { return hn::AllFalse(D(), hn::Lt(signs, hn::Zero(D()))); }

  Entries last, shift, signs;
};

bool all_inside(const int64_t* values, int64_t count, int64_t size, int64_t wrap) {
  Bounds bounds(size, wrap);
  int64_t e = 0;
  for (; e + kLanes <= count; e += kLanes) bounds.look_at(hn::LoadU(D(), values + e));
  for (; e < count; ++e) bounds.look_at(hn::Set(D(), values[e]));
  return bounds.held();
}

bool put_offsets(const int64_t* values, int64_t count, int64_t size, int64_t wrap, int64_t stride,
                 bool add, int64_t* to) {
  const D d;
  const auto by = hn::Set(d, stride), kept = hn::Set(d, -int64_t{add});
  Bounds bounds(size, wrap);
  const auto offsets = [&](Entries entries, Entries before) HWY_ATTR {
    bounds.look_at(entries);
    const auto places = hn::Add(entries, hn::And(hn::BroadcastSignBit(entries), bounds.shift));
    return hn::Add(hn::Mul(places, by), hn::And(before, kept));
  };
  int64_t e = 0;
  for (; e + kLanes <= count; e += kLanes)
    hn::StoreU(offsets(hn::LoadU(d, values + e), hn::LoadU(d, to + e)), d, to + e);
  for (; e < count; ++e) to[e] = hn::GetLane(offsets(hn::Set(d, values[e]), hn::Set(d, to[e])));
  return bounds.held();
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(all_inside);
HWY_EXPORT(put_offsets);

}  // namespace treadle::simd

namespace treadle::cpu {

bool all_inside(const int64_t* values, int64_t count, int64_t size, int64_t wrap) {
  using namespace simd;
  return HWY_DYNAMIC_DISPATCH(all_inside)(values, count, size, wrap);
}

bool put_offsets(const int64_t* values, int64_t count, int64_t size, int64_t wrap, int64_t stride,
                 bool add, int64_t* to) {
  using namespace simd;
  return HWY_DYNAMIC_DISPATCH(put_offsets)(values, count, size, wrap, stride, add, to);
}

}  // namespace treadle::cpu
#endif  // HWY_ONCE
