// Loops over consecutive elements, for expressions that the generator writes as functors:
//
//   struct add_Tensor_fn {
//     template <class V> static HWY_INLINE auto eval(V self, V other, V alpha) { return self +
//     alpha * other; }
//   };
//   constexpr PointwiseBlocks add_Tensor_blocks = pointwise_blocks<add_Tensor_fn, 2, 1, false,
//   true, float, double, int64_t>();
//
// eval takes the tensors' elements in the schema's order, then the numbers in the schema's order.
#if defined(TREADLE_ATEN_CPU_SIMD_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_BLOCKS_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_BLOCKS_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_BLOCKS_INL_H_
#endif

#include <utility>

#include "aten/cpu/pointwise_blocks.h"
#include "aten/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

template <class T>
HWY_INLINE Vec<T> as_value(Vec<T> v) {
  return v;
}
template <class T>
HWY_INLINE Vec<T> as_value(Mask<T> m) {
  return where(m, set(T(1)), set(T(0)));
}

template <class Fn, class T, bool kBoolResult, int kTensors, int kScalars>
void pointwise_block(void* out, const void* const* in, const Scalar* scalars, int64_t n) {
  using V = typename ValueOf<T>::type;
  [&]<size_t... I, size_t... S>(std::index_sequence<I...>, std::index_sequence<S...>) HWY_ATTR {
    const std::array<V, kScalars> s = {from_scalar<V>(scalars[S])...};
    if constexpr (is_vec<V>) {
      const std::array<const T*, kTensors> p = {static_cast<const T*>(in[I])...};
      constexpr int64_t kLanes = V::kLanes;
      int64_t i = 0;
      if constexpr (kBoolResult) {
        bool* const o = static_cast<bool*>(out);
        for (; i + kLanes <= n; i += kLanes)
          store_first(cast_bool(Fn::eval(load(p[I] + i)..., s[S]...)), o + i, kLanes);
        if (i < n)
          store_first(cast_bool(Fn::eval(load_first(p[I] + i, n - i)..., s[S]...)), o + i, n - i);
      } else {
        T* const o = static_cast<T*>(out);
        for (; i + kLanes <= n; i += kLanes)
          store(as_value(Fn::eval(load(p[I] + i)..., s[S]...)), o + i);
        if (i < n)
          store_first(as_value(Fn::eval(load_first(p[I] + i, n - i)..., s[S]...)), o + i, n - i);
      }
    } else {
      // Elements of `out` and `in` are the same ones or apart, so no iteration depends on another.
      const std::array<const V*, kTensors> p = {static_cast<const V*>(in[I])...};
      if constexpr (kBoolResult) {
        bool* const o = static_cast<bool*>(out);
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) o[i] = cast_bool(Fn::eval(p[I][i]..., s[S]...)).v;
      } else {
        V* const o = static_cast<V*>(out);
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) o[i] = as_element<V>(Fn::eval(p[I][i]..., s[S]...));
      }
    }
  }
  (std::make_index_sequence<kTensors>(), std::make_index_sequence<kScalars>());
}

// Ts: the compute types of the operator's dtypes (16-bit floats compute in float).
template <class Fn, int kTensors, int kScalars, bool kBoolResult, bool kArithmetic, class... Ts>
constexpr PointwiseBlocks pointwise_blocks() {
  PointwiseBlocks blocks;
  blocks.bool_result = kBoolResult;
  blocks.arithmetic = kArithmetic;
  (
      [&] {
        if constexpr (HWY_TARGET != HWY_AVX3 || is_vec<typename ValueOf<Ts>::type>) {
          blocks.by_dtype[static_cast<size_t>(scalar_type_of<Ts>)] =
              &pointwise_block<Fn, Ts, kBoolResult, kTensors, kScalars>;
        }
      }(),
      ...);
  return blocks;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
