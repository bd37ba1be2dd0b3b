// Loops over consecutive elements, for the functors that the generator writes from expressions:
//
//   struct add_Tensor_fn {
//     template <class V>
//     static HWY_INLINE auto eval(V self, V other, V alpha) { return self + alpha * other; }
//   };
//   constexpr PointwiseBlocks add_Tensor_blocks =
//       pointwise_blocks<add_Tensor_fn, TREADLE_NUMBERS::add_Tensor_fn, 2, 1, false, float, double,
//                        int64_t>();
//
// eval takes the tensors' elements in the schema's order, then the numbers in the schema's order.
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_BLOCKS_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_BLOCKS_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_BLOCKS_INL_H_
#endif

#include <utility>

#include "aten/engine/cpu/pointwise_blocks.h"
#include "aten/scalar/math-inl.h"

// The namespace with this target's loops over integers, bool and complex numbers. AVX3 uses those
// of AVX2, which bounds compile time.
#undef TREADLE_NUMBERS
#if HWY_TARGET == HWY_AVX3 && (HWY_TARGETS & HWY_AVX2)
#define TREADLE_NUMBERS N_AVX2
#else
#define TREADLE_NUMBERS HWY_NAMESPACE
#endif

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

// The value that a block stores: a mask where the operator's result is a truth value.
template <bool kBoolResult, class V>
HWY_INLINE auto block_result(V v) {
  if constexpr (kBoolResult)
    return cast_bool(v);
  else
    return as_value(v);
}
template <class T>
HWY_INLINE void store_all(Vec<T> v, T* p) {
  store(v, p);
}
template <class T>
HWY_INLINE void store_all(Mask<T> m, bool* p) {
  store_first(m, p, Vec<T>::kLanes);
}

template <class Fn, class T, bool kBoolResult, int kTensors, int kScalars>
void pointwise_block(void* out, const void* const* in, const Scalar* scalars, int64_t n) {
  using V = typename ValueOf<T>::type;
  using Out = std::conditional_t<kBoolResult, bool, T>;
  [&]<size_t... I, size_t... S>(std::index_sequence<I...>, std::index_sequence<S...>) HWY_ATTR {
    const std::array<V, kScalars> s = {from_scalar<V>(scalars[S])...};
    if constexpr (is_vec<V>) {
      const std::array<const T*, kTensors> p = {static_cast<const T*>(in[I])...};
      Out* const o = static_cast<Out*>(out);
      int64_t i = 0;
      for (; i + V::kLanes <= n; i += V::kLanes)
        store_all(block_result<kBoolResult>(Fn::eval(load(p[I] + i)..., s[S]...)), o + i);
      if (i < n) {
        store_first(block_result<kBoolResult>(Fn::eval(load_first(p[I] + i, n - i)..., s[S]...)),
                    o + i, n - i);
      }
    } else {
      // Elements of `out` and `in` are the same ones or apart, so no iteration depends on another.
      const std::array<const V*, kTensors> p = {static_cast<const V*>(in[I])...};
      using Result = std::conditional_t<kBoolResult, bool, V>;
      Result* const o = static_cast<Result*>(out);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        if constexpr (kBoolResult)
          o[i] = cast_bool(Fn::eval(p[I][i]..., s[S]...)).v;
        else
          o[i] = as_element<V>(Fn::eval(p[I][i]..., s[S]...));
      }
    }
  }
  (std::make_index_sequence<kTensors>(), std::make_index_sequence<kScalars>());
}

// NumberFn: Fn in the namespace TREADLE_NUMBERS. Ts: the compute types of the operator's dtypes
// (16-bit floats compute in float).
template <class Fn, class NumberFn, int kTensors, int kScalars, bool kBoolResult, class... Ts>
constexpr PointwiseBlocks pointwise_blocks() {
  PointwiseBlocks blocks;
  blocks.bool_result = kBoolResult;
  (
      [&] {
        PointwiseBlock*& block = blocks.by_dtype[static_cast<size_t>(scalar_type_of<Ts>)];
        if constexpr (is_vec<typename ValueOf<Ts>::type>)
          block = &pointwise_block<Fn, Ts, kBoolResult, kTensors, kScalars>;
        else
          block = &TREADLE_NUMBERS::pointwise_block<NumberFn, Ts, kBoolResult, kTensors, kScalars>;
      }(),
      ...);
  return blocks;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
