// Loops over consecutive elements for several operators at once, which sources of fused loops name
// (aten/fusion/fused_loop.h).
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_FUSED_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_FUSED_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_FUSED_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_FUSED_INL_H_
#endif

#include <algorithm>

#include "aten/engine/cpu/blocks-inl.h"
#include "aten/scalar/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// The value as it is after a tensor of Narrow, a 16-bit float, has held it.
template <class Narrow>
HWY_INLINE Vec<float> rounded(Vec<float> v) {
  constexpr int64_t kLanes = Vec<float>::kLanes;
  HWY_ALIGN Narrow narrow[kLanes];
  store_computed(v, narrow, kLanes);
  return load_computed(narrow, kLanes);
}

// The block of several operators on vectors of T: Fn::eval takes the elements of the tensors, the
// numbers, and put(number, value), which it calls for each result.
// kBools: whether a result is of bools.
template <class Fn, class T, int kTensors, int kScalars, bool... kBools>
void fused_block(void* const* out, const void* const* in, const Scalar* scalars, int64_t n,
                 Pass pass) {
  using V = typename ValueOf<T>::type;
  [&]<size_t... I, size_t... S>(std::index_sequence<I...>, std::index_sequence<S...>) HWY_ATTR {
    const std::array<V, kScalars> s = {from_scalar<V>(scalars[S])...};
    const std::array<const T*, kTensors> p = {static_cast<const T*>(in[I])...};
    std::array<void*, sizeof...(kBools)> o;
    std::copy_n(out, o.size(), o.begin());
    static constexpr bool kIsBool[] = {kBools...};
    constexpr int64_t kLanes = V::kLanes;
    const int64_t whole = n - n % kLanes;
    for (int64_t i = 0; i < whole; i += kLanes) {
      const auto put = [&]<int k>(std::integral_constant<int, k>, auto value) HWY_ATTR {
        if constexpr (kIsBool[k])
          store_first(cast_bool(value), static_cast<bool*>(o[k]) + i, kLanes);
        else if (pass == Pass::PastCaches)
          hn::Stream(value.raw, Tag<T>(), static_cast<T*>(o[k]) + i);
        else
          store(value, static_cast<T*>(o[k]) + i);
      };
      Fn::eval(load(p[I] + i)..., s[S]..., put);
    }
    if (whole < n) {
      const auto put = [&]<int k>(std::integral_constant<int, k>, auto value) HWY_ATTR {
        if constexpr (kIsBool[k])
          store_first(cast_bool(value), static_cast<bool*>(o[k]) + whole, n - whole);
        else
          store_first(value, static_cast<T*>(o[k]) + whole, n - whole);
      };
      Fn::eval(load_first(p[I] + whole, n - whole)..., s[S]..., put);
    }
  }
  (std::make_index_sequence<kTensors>(), std::make_index_sequence<kScalars>());
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
