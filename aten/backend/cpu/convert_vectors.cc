// The vector loops of conversions. A target that has no instruction for a conversion of 16-bit
// floats converts no element, and convert.cc does all of them.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/backend/cpu/convert_vectors.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>
#include <cmath>

#include "aten/backend/cpu/convert.h"
#include "aten/backend/cpu/convert_vectors.h"
#include "aten/backend/cpu/interleaved_pages.h"
#include "aten/scalar/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// Loops over numbers and bools, of which the compiler makes vectors.
struct NumberLoops {
  static constexpr int64_t kGroup = 64;  // numbers that are checked together

  // Floating-point numbers as integers, by way of int32, to which the compiler converts vectors.
  // Groups are converted until one has a number that int32 does not hold. Returns how many
  // elements.
  template <class From, class To>
  static int64_t converted_by_int32(const From* src, To* dst, int64_t n) {
    using Flag = std::conditional_t<sizeof(From) == 4, int32_t, int64_t>;
    constexpr From kEnd = 2147483648.0;
    int64_t i = 0;
    for (; i + kGroup <= n; i += kGroup) {
      Flag is_outside = 0;
      for (int64_t k = i; k < i + kGroup; ++k) is_outside |= !(std::abs(src[k]) < kEnd);
      if (is_outside) break;
#pragma GCC ivdep
      for (int64_t k = i; k < i + kGroup; ++k)
        dst[k] = static_cast<To>(static_cast<int32_t>(src[k]));
    }
    return i;
  }
  template <class From, class To>
  static int64_t convert(const char* src, char* dst, int64_t n) {
    const auto* const from = reinterpret_cast<const From*>(src);
    auto* const to = reinterpret_cast<To*>(dst);
    int64_t i = 0;
    if constexpr (std::is_same_v<From, bool> && std::is_floating_point_v<To>) {
      // By way of int, from which the compiler has vectors.
      const auto* const bytes = reinterpret_cast<const uint8_t*>(src);
#pragma GCC ivdep
      for (; i < n; ++i) to[i] = static_cast<To>(int{bytes[i] != 0});
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> &&
                         !std::is_same_v<To, bool>) {
      // Groups begin again behind one whose numbers are converted one by one.
      while (i < n) {
        i += converted_by_int32(from + i, to + i, n - i);
        for (const int64_t end = std::min(n, i + kGroup); i < end; ++i)
          to[i] = convert_element<To>(from[i]);
      }
    }
#pragma GCC ivdep
    for (; i < n; ++i) to[i] = convert_element<To>(element_value(from[i]));
    return i;
  }
};

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
  static int64_t float_to_double(const char* src, char* dst, int64_t n) {
    int64_t i = 0;
    const Tag<double> d;
    const hn::Rebind<float, Tag<double>> narrow;
    const auto* const from = reinterpret_cast<const float*>(src);
    auto* const to = reinterpret_cast<double*>(dst);
#pragma GCC unroll 4
    for (; i + kLanes<double> <= n; i += kLanes<double>)
      hn::StoreU(hn::PromoteTo(d, hn::LoadU(narrow, from + i)), d, to + i);
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
  static int64_t backwards(const char* src, char* dst, int64_t n) {
    const hn::ScalableTag<Bits> d;
    constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<Bits>()));
    const auto* const from = reinterpret_cast<const Bits*>(src);
    auto* const to = reinterpret_cast<Bits*>(dst);
    int64_t i = 0;
    for (; i + kStep <= n; i += kStep)
      hn::StoreU(hn::Reverse(d, hn::LoadU(d, from - i - kStep + 1)), d, to + i);
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

  template <class From, class To>
  static constexpr ConvertVectors::Run of_types() {
    if constexpr (std::is_same_v<From, To>) {
      return nullptr;
    } else if constexpr (std::is_same_v<From, Half> && std::is_same_v<To, float>) {
      return &half_to_float;
    } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Half>) {
      return &float_to_half;
    } else if constexpr (std::is_same_v<From, BFloat16> && std::is_same_v<To, float>) {
      return &bfloat16_to_float;
    } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, BFloat16>) {
      return &float_to_bfloat16;
    } else if constexpr (kIsWidest && std::is_same_v<From, float> && std::is_same_v<To, double>) {
      return &float_to_double;
    } else if constexpr (std::is_arithmetic_v<From> && std::is_arithmetic_v<To>) {
      return &TREADLE_NUMBERS::NumberLoops::convert<From, To>;
    } else {
      return nullptr;
    }
  }
  template <class From, class... Tos>
  static constexpr std::array<ConvertVectors::Run, kNumScalarTypes> row(TypeList<Tos...>) {
    return {of_types<From, Tos>()...};
  }
  template <class... Froms>
  static constexpr std::array<std::array<ConvertVectors::Run, kNumScalarTypes>, kNumScalarTypes>
  table(TypeList<Froms...>) {
    return {row<Froms>(AllTypes())...};
  }

  static constexpr ConvertVectors loops() {
    return {table(AllTypes()),    &from_every_second, &to_every_second, &backwards<uint32_t>,
            &backwards<uint64_t>, &repeat<uint32_t>,  &repeat<uint64_t>};
  }
};

const ConvertVectors& convert_loops() {
  static constexpr ConvertVectors loops = ConvertLoops::loops();
  return loops;
}

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
