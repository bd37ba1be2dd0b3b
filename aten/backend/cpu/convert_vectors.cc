// The vector loops of conversions. A target that has no instruction for a conversion converts no
// element, and convert.cc does all of them.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/backend/cpu/convert_vectors.cc"
#include "aten/backend/cpu/foreach_target.h"

#include "aten/backend/cpu/convert_vectors.h"
#include "aten/backend/cpu/interleaved_pages.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

struct ConvertLoops {
  // At most eight elements: longer vectors are not faster here.
  template <class T>
  using Tag = hn::CappedTag<T, 8>;
  template <class T>
  static constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
  static constexpr bool kHasHalf = true;
#else
  static constexpr bool kHasHalf = false;
#endif
  static constexpr bool kIsWide = HWY_LANES(uint8_t) >= 32, kIsWidest = HWY_LANES(uint8_t) >= 64;

  static int64_t half_to_float([[maybe_unused]] const char* src, [[maybe_unused]] char* dst,
                               [[maybe_unused]] int64_t n) {
    int64_t i = 0;
    if constexpr (kHasHalf) {
      const Tag<float> d;
      const hn::Rebind<hwy::float16_t, Tag<float>> half;
      const auto* const from = reinterpret_cast<const hwy::float16_t*>(src);
      auto* const to = reinterpret_cast<float*>(dst);
      for (; i + kLanes<float> <= n; i += kLanes<float>)
        hn::StoreU(hn::PromoteTo(d, hn::LoadU(half, from + i)), d, to + i);
    }
    return i;
  }
  static int64_t float_to_half([[maybe_unused]] const char* src, [[maybe_unused]] char* dst,
                               [[maybe_unused]] int64_t n) {
    int64_t i = 0;
    if constexpr (kHasHalf) {
      const Tag<float> d;
      const hn::Rebind<hwy::float16_t, Tag<float>> half;
      const auto* const from = reinterpret_cast<const float*>(src);
      auto* const to = reinterpret_cast<hwy::float16_t*>(dst);
      for (; i + kLanes<float> <= n; i += kLanes<float>)
        hn::StoreU(hn::DemoteTo(half, hn::LoadU(d, from + i)), half, to + i);
    }
    return i;
  }
  static int64_t bfloat16_to_float(const char* src, char* dst, int64_t n) {
    const hn::ScalableTag<uint32_t> d;
    const hn::Rebind<uint16_t, hn::ScalableTag<uint32_t>> narrow;
    constexpr int64_t kStep = HWY_LANES(uint32_t);
    const auto* const from = reinterpret_cast<const uint16_t*>(src);
    auto* const to = reinterpret_cast<uint32_t*>(dst);
    int64_t i = 0;
    for (; i + kStep <= n; i += kStep)
      hn::StoreU(hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(narrow, from + i))), d, to + i);
    return i;
  }
  static int64_t float_to_bfloat16(const char* src, char* dst, int64_t n) {
    const hn::ScalableTag<float> d;
    const hn::RebindToUnsigned<hn::ScalableTag<float>> bits;
    const hn::Rebind<uint16_t, hn::ScalableTag<float>> narrow;
    constexpr int64_t kStep = HWY_LANES(float);
    const auto* const from = reinterpret_cast<const float*>(src);
    auto* const to = reinterpret_cast<uint16_t*>(dst);
    int64_t i = 0;
    for (; i + kStep <= n; i += kStep) {
      const auto value = hn::LoadU(d, from + i);
      const auto u = hn::BitCast(bits, value), high = hn::ShiftRight<16>(u);
      // To the nearest, of two the even one; a NaN stays one.
      const auto odd = hn::And(high, hn::Set(bits, 1));
      const auto nearest = hn::ShiftRight<16>(hn::Add(u, hn::Add(odd, hn::Set(bits, 0x7fff))));
      const auto is_nan = hn::RebindMask(bits, hn::IsNaN(value));
      const auto y = hn::IfThenElse(is_nan, hn::Or(high, hn::Set(bits, 0x40)), nearest);
      hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(hn::RebindToSigned<decltype(bits)>(), y)), narrow,
                 to + i);
    }
    return i;
  }
  static int64_t float_to_double([[maybe_unused]] const char* src, [[maybe_unused]] char* dst,
                                 [[maybe_unused]] int64_t n) {
    int64_t i = 0;
    if constexpr (kIsWidest) {
      const Tag<double> d;
      const hn::Rebind<float, Tag<double>> narrow;
      const auto* const from = reinterpret_cast<const float*>(src);
      auto* const to = reinterpret_cast<double*>(dst);
#pragma GCC unroll 4
      for (; i + kLanes<double> <= n; i += kLanes<double>)
        hn::StoreU(hn::PromoteTo(d, hn::LoadU(narrow, from + i)), d, to + i);
    }
    return i;
  }

  // The strided loops do not read past the last element.
  static int64_t from_every_second([[maybe_unused]] const char* src, [[maybe_unused]] char* dst,
                                   [[maybe_unused]] int64_t n) {
    int64_t i = 0;
    if constexpr (kIsWide) {
      const Tag<uint32_t> d;
      constexpr int64_t kStep = kLanes<uint32_t>;
      const auto* const from = reinterpret_cast<const uint32_t*>(src);
      auto* const to = reinterpret_cast<uint32_t*>(dst);
      for (; i + kStep < n; i += kStep) {
        const auto low = hn::LoadU(d, from + 2 * i), high = hn::LoadU(d, from + 2 * i + kStep);
        hn::StoreU(hn::ConcatEven(d, high, low), d, to + i);
      }
    }
    return i;
  }
  static int64_t to_every_second([[maybe_unused]] const char* src, [[maybe_unused]] char* dst,
                                 [[maybe_unused]] int64_t n) {
    int64_t i = 0;
    if constexpr (kIsWidest) {
      const hn::ScalableTag<uint32_t> d;
      const Tag<uint64_t> wide;
      const hn::Rebind<uint32_t, Tag<uint64_t>> narrow;
      constexpr int64_t kStep = kLanes<uint64_t>;
      const auto* const from = reinterpret_cast<const uint32_t*>(src);
      auto* const to = reinterpret_cast<uint32_t*>(dst);
      const auto even = hn::Eq(hn::And(hn::Iota(d, 0), hn::Set(d, 1)), hn::Zero(d));
      for (; i + kStep <= n; i += kStep) {
        __builtin_prefetch(dst + 8 * i + cpu::InterleavedPages::kPageBytes, 1);  // see there
        const auto spread = hn::BitCast(d, hn::PromoteTo(wide, hn::LoadU(narrow, from + i)));
        // The mask leaves the bytes between unchanged, because another thread may be writing there.
        hn::BlendedStore(spread, even, d, to + 2 * i);
      }
    }
    return i;
  }

  static constexpr ConvertVectors kLoops = {
      &half_to_float,   &float_to_half,     &bfloat16_to_float, &float_to_bfloat16,
      &float_to_double, &from_every_second, &to_every_second};
};

const ConvertVectors& convert_loops() { return ConvertLoops::kLoops; }

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(convert_loops);

const ConvertVectors& convert_vectors() {
  static const ConvertVectors& loops = HWY_DYNAMIC_DISPATCH(convert_loops)();
  return loops;
}

}  // namespace treadle::simd
#endif  // HWY_ONCE
