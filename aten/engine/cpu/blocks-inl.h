// Loops over consecutive elements, for the functors that the generator writes from expressions:
//
//   struct add_Tensor_fn {
//     template <class V>
//     static HWY_INLINE auto eval(V self, V other, V alpha) { return self + alpha * other; }
//   };
//   constexpr PointwiseBlocks add_Tensor_blocks =
//       pointwise_blocks<add_Tensor_fn, TREADLE_NUMBERS::add_Tensor_fn, 2, 1, false, true, float,
//                        double, int64_t>();
//
// eval takes the tensors' elements in the schema's order, then the numbers in the schema's order.
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_BLOCKS_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_BLOCKS_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_BLOCKS_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_BLOCKS_INL_H_
#endif

#include <utility>

#include "aten/backend/cpu/interleaved_pages.h"
#include "aten/engine/cpu/pointwise_blocks.h"
#include "aten/scalar/bessel-inl.h"
#include "aten/scalar/error-inl.h"
#include "aten/scalar/gamma-inl.h"
#include "aten/scalar/math-inl.h"
#include "aten/scalar/polynomials-inl.h"

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

// Writes a piece past the caches; both are where a line begins.
HWY_INLINE void stream_piece(const unsigned char* piece, void* to) {
  const Tag<uint8_t> d;
  uint8_t* const bytes = static_cast<uint8_t*>(to);
  for (size_t i = 0; i < cpu::InterleavedPages::kPieceBytes; i += hn::Lanes(d))
    hn::Stream(hn::Load(d, piece + i), d, bytes + i);
}
HWY_INLINE void prefetch_piece(const void* from) {
  for (int i = 0; i < cpu::InterleavedPages::kPieceBytes; i += 64)
    __builtin_prefetch(static_cast<const char*>(from) + i);
}

template <class Fn, class T, bool kBoolResult, int kTensors, int kScalars>
void pointwise_block(void* out, const void* const* in, const Scalar* scalars, int64_t n,
                     [[maybe_unused]] Pass pass = Pass::InOrder) {
  using V = typename ValueOf<T>::type;
  [&]<size_t... I, size_t... S>(std::index_sequence<I...>, std::index_sequence<S...>) HWY_ATTR {
    const std::array<V, kScalars> s = {from_scalar<V>(scalars[S])...};
    if constexpr (is_vec<V>) {
      const std::array<const T*, kTensors> p = {static_cast<const T*>(in[I])...};
      constexpr int64_t kLanes = V::kLanes;
      [[maybe_unused]] constexpr int64_t kPiece =
          cpu::InterleavedPages::kPieceBytes / int64_t{sizeof(T)};
      const int64_t whole = n - n % kLanes;
      cpu::InterleavedPages turns(whole, pass == Pass::InOrder ? 0 : kPiece);
      if constexpr (kBoolResult) {
        bool* const o = static_cast<bool*>(out);
        do {
          for (int64_t i = turns.first; i < turns.end; i += kLanes)
            store_first(cast_bool(Fn::eval(load(p[I] + i)..., s[S]...)), o + i, kLanes);
        } while (turns.next());
        if (whole < n) {
          store_first(cast_bool(Fn::eval(load_first(p[I] + whole, n - whole)..., s[S]...)),
                      o + whole, n - whole);
        }
      } else {
        T* const o = static_cast<T*>(out);
        do {
          for (int64_t i = turns.first; i < turns.end; i += kLanes) {
            const Vec<T> result = as_value(Fn::eval(load(p[I] + i)..., s[S]...));
            if (pass == Pass::PastCaches) {
              hn::Stream(result.raw, Tag<T>(), o + i);
              (__builtin_prefetch(p[I] + i + kPiece), ...);  // for the page's next turn
            } else {
              store(result, o + i);
            }
          }
        } while (turns.next());
        if (whole < n) {
          store_first(as_value(Fn::eval(load_first(p[I] + whole, n - whole)..., s[S]...)),
                      o + whole, n - whole);
        }
      }
    } else {
      // Elements of `out` and `in` are the same ones or apart, so no iteration depends on another.
      const std::array<const V*, kTensors> p = {static_cast<const V*>(in[I])...};
      constexpr int64_t kPiece = cpu::InterleavedPages::kPieceBytes / int64_t{sizeof(V)};
      cpu::InterleavedPages turns(n, pass == Pass::InOrder ? 0 : kPiece);
      if constexpr (kBoolResult) {
        bool* const o = static_cast<bool*>(out);
        do {
#pragma GCC ivdep
          for (int64_t i = turns.first; i < turns.end; ++i)
            o[i] = cast_bool(Fn::eval(p[I][i]..., s[S]...)).v;
        } while (turns.next());
      } else {
        alignas(64) unsigned char piece[cpu::InterleavedPages::kPieceBytes];
        do {
          V* const o = static_cast<V*>(out) + turns.first;
          const int64_t count = turns.end - turns.first;
          const bool streamed = pass == Pass::PastCaches && count == kPiece;
          V* const to = streamed ? reinterpret_cast<V*>(piece) : o;
#pragma GCC ivdep
          for (int64_t i = 0; i < count; ++i)
            to[i] = as_element<V>(Fn::eval(p[I][turns.first + i]..., s[S]...));
          if (streamed) {
            stream_piece(piece, o);
            (prefetch_piece(p[I] + turns.end), ...);  // for the page's next turn
          }
        } while (turns.next());
      }
    }
  }
  (std::make_index_sequence<kTensors>(), std::make_index_sequence<kScalars>());
}

// The type whose loop computes integers of type T: the unsigned one where the sign does not matter.
template <class T, bool kIgnoresSign>
struct LoopType {
  using type = T;
};
template <class T>
requires(std::is_integral_v<T>&& std::is_signed_v<T>) struct LoopType<T, true> {
  using type = std::make_unsigned_t<T>;
};

// NumberFn: Fn in the namespace TREADLE_NUMBERS. kIgnoresSign: signed and unsigned integers of one
// size share a loop. Ts: the compute types of the operator's dtypes (16-bit floats compute in
// float).
template <class Fn, class NumberFn, int kTensors, int kScalars, bool kBoolResult, bool kIgnoresSign,
          class... Ts>
constexpr PointwiseBlocks pointwise_blocks() {
  PointwiseBlocks blocks;
  blocks.bool_result = kBoolResult;
  (
      [&] {
        PointwiseBlock*& block = blocks.by_dtype[static_cast<size_t>(scalar_type_of<Ts>)];
        if constexpr (is_vec<typename ValueOf<Ts>::type>)
          block = &pointwise_block<Fn, Ts, kBoolResult, kTensors, kScalars>;
        else
          block =
              &TREADLE_NUMBERS::pointwise_block<NumberFn, typename LoopType<Ts, kIgnoresSign>::type,
                                                kBoolResult, kTensors, kScalars>;
      }(),
      ...);
  return blocks;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
