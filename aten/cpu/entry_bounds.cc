// Signs of what must not be negative, gathered without branches: last - entry, entry + wrap. What
// is outside may overflow when it is multiplied, which vectors define.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "aten/cpu/entry_bounds.cc"
#include "aten/cpu/simd/targets.h"
#include "hwy/foreach_target.h"

#include "aten/cpu/entry_bounds.h"
#include "aten/cpu/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

bool all_inside(const int64_t* values, int64_t count, int64_t size, int64_t wrap) {
  const Tag<int64_t> d;
  constexpr int64_t kLanes = HWY_LANES(int64_t);
  const auto last = hn::Set(d, size - 1), shift = hn::Set(d, wrap);
  auto signs = hn::Zero(d);
  const auto look_at = [&](hn::Vec<Tag<int64_t>> entries) HWY_ATTR {
    signs = hn::Or(signs, hn::Or(hn::Sub(last, entries), hn::Add(entries, shift)));
  };
  int64_t e = 0;
  for (; e + kLanes <= count; e += kLanes) look_at(hn::LoadU(d, values + e));
  for (; e < count; ++e) look_at(hn::Set(d, values[e]));
  return hn::AllFalse(d, hn::Lt(signs, hn::Zero(d)));
}

bool put_offsets(const int64_t* values, int64_t count, int64_t size, int64_t wrap, int64_t stride,
                 bool add, int64_t* to) {
  const Tag<int64_t> d;
  constexpr int64_t kLanes = HWY_LANES(int64_t);
  const auto last = hn::Set(d, size - 1), shift = hn::Set(d, wrap), by = hn::Set(d, stride);
  const auto kept = hn::Set(d, -int64_t{add});
  auto signs = hn::Zero(d);
  const auto offsets = [&](hn::Vec<Tag<int64_t>> entries, hn::Vec<Tag<int64_t>> before) HWY_ATTR {
    signs = hn::Or(signs, hn::Or(hn::Sub(last, entries), hn::Add(entries, shift)));
    const auto places = hn::Add(entries, hn::And(hn::BroadcastSignBit(entries), shift));
    return hn::Add(hn::Mul(places, by), hn::And(before, kept));
  };
  int64_t e = 0;
  for (; e + kLanes <= count; e += kLanes)
    hn::StoreU(offsets(hn::LoadU(d, values + e), hn::LoadU(d, to + e)), d, to + e);
  for (; e < count; ++e) to[e] = hn::GetLane(offsets(hn::Set(d, values[e]), hn::Set(d, to[e])));
  return hn::AllFalse(d, hn::Lt(signs, hn::Zero(d)));
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::cpu {

bool all_inside(const int64_t* values, int64_t count, int64_t size, int64_t wrap) {
  return simd::chosen(simd::N_SSE4::all_inside, simd::N_AVX2::all_inside, simd::N_AVX3::all_inside)(
      values, count, size, wrap);
}

bool put_offsets(const int64_t* values, int64_t count, int64_t size, int64_t wrap, int64_t stride,
                 bool add, int64_t* to) {
  return simd::chosen(simd::N_SSE4::put_offsets, simd::N_AVX2::put_offsets,
                      simd::N_AVX3::put_offsets)(values, count, size, wrap, stride, add, to);
}

}  // namespace treadle::cpu
#endif  // HWY_ONCE
