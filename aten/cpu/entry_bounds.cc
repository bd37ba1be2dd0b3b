// Signs of what must not be negative, gathered without branches: last - entry, entry + wrap.
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

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::cpu {

bool all_inside(const int64_t* values, int64_t count, int64_t size, int64_t wrap) {
  return simd::chosen(simd::N_SSE4::all_inside, simd::N_AVX2::all_inside, simd::N_AVX3::all_inside)(
      values, count, size, wrap);
}

}  // namespace treadle::cpu
#endif  // HWY_ONCE
