// The vector loops of conversions. A target that has no instruction for a conversion converts no
// element, and convert.cc does all of them.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/backend/cpu/convert_vectors.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>

#include "aten/backend/cpu/convert_vectors.h"
#include "aten/backend/cpu/interleaved_pages.h"
#include "aten/scalar/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

struct ConvertLoops {
  // At most eight elements: longer vectors are not faster here.
  template <class T>
  using Tag = hn::CappedTag<T, 8>;
  template <class T>
  static constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));

  static constexpr bool kIsWide = HWY_LANES(uint8_t) >= 32, kIsWidest = HWY_LANES(uint8_t) >= 64;

  template <class T, class D>
  static HWY_INLINE int64_t from_narrow(D d, const char* src, char* dst, int64_t n) {
    constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(D()));
    const auto* const from = reinterpret_cast<const T*>(src);
    auto* const to = reinterpret_cast<float*>(dst);
    int64_t i = 0;
    for (; i + kStep <= n; i += kStep) hn::StoreU(load_narrow(d, from + i), d, to + i);
    return i;
  }
  template <class T, class D>
  static HWY_INLINE int64_t to_narrow(D d, const char* src, char* dst, int64_t n) {
    constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(D()));
    const auto* const from = reinterpret_cast<const float*>(src);
    auto* const to = reinterpret_cast<T*>(dst);
    int64_t i = 0;
    for (; i + kStep <= n; i += kStep) store_narrow(hn::LoadU(d, from + i), d, to + i);
    return i;
  }
  static int64_t half_to_float([[maybe_unused]] const char* src, [[maybe_unused]] char* dst,
                               [[maybe_unused]] int64_t n) {
    if constexpr (kHasHalf) return from_narrow<Half>(Tag<float>(), src, dst, n);
    return 0;
  }
  static int64_t float_to_half([[maybe_unused]] const char* src, [[maybe_unused]] char* dst,
                               [[maybe_unused]] int64_t n) {
    if constexpr (kHasHalf) return to_narrow<Half>(Tag<float>(), src, dst, n);
    return 0;
  }
  static int64_t bfloat16_to_float(const char* src, char* dst, int64_t n) {
    return from_narrow<BFloat16>(hn::ScalableTag<float>(), src, dst, n);
  }
  static int64_t float_to_bfloat16(const char* src, char* dst, int64_t n) {
    return to_narrow<BFloat16>(hn::ScalableTag<float>(), src, dst, n);
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

  template <class Bits>
  static void repeat(const char* from, int64_t stride, int64_t rows, char* to, int64_t n) {
    const hn::ScalableTag<Bits> d;
    constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<Bits>()));
    Bits* place = reinterpret_cast<Bits*>(to);
    for (int64_t row = 0; row < rows; ++row, from += stride, place += n) {
      const Bits bits = *reinterpret_cast<const Bits*>(from);
      if (n < kStep) {
        std::fill_n(place, n, bits);
        continue;
      }
      const auto v = hn::Set(d, bits);
      for (int64_t i = 0; i + kStep < n; i += kStep) hn::StoreU(v, d, place + i);
      hn::StoreU(v, d, place + n - kStep);  // over some that are written already
    }
  }

  static constexpr ConvertVectors kLoops = {
      &half_to_float,     &float_to_half,    &bfloat16_to_float,
      &float_to_bfloat16, &float_to_double,  &from_every_second,
      &to_every_second,   &repeat<uint32_t>, &repeat<uint64_t>};
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
