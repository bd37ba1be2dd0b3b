// Loops of reductions, for the functors that the generator writes from `reduce:`
//
//   struct sum_fn {
//     // Left out where no element has no result.
//     template <class A> static HWY_INLINE A init() { return constant<A>(0); }
//     template <class A, class X> static HWY_INLINE auto step(A acc, X x) { return acc + x; }
//     template <class A> static HWY_INLINE auto combine(A a, A b) { return a + b; }
//     template <class A> static HWY_INLINE auto final(A acc, A n) { return acc; }
//   };
//   constexpr ReduceBlocks sum_blocks =
//       reduce_blocks<sum_fn, TREADLE_NUMBERS::sum_fn, int64_t, float, double>();
//
// A fold keeps kFoldBytes of accumulators whatever the vector's width, so that its bits do not
// depend on the machine's vectors: lane l is combined with lane l + half, then l + quarter, and so
// on.
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_SIMD_REDUCE_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_SIMD_REDUCE_INL_H_
#undef TREADLE_ATEN_CPU_SIMD_REDUCE_INL_H_
#else
#define TREADLE_ATEN_CPU_SIMD_REDUCE_INL_H_
#endif

#include "aten/engine/cpu/blocks-inl.h"
#include "aten/engine/cpu/reduce_blocks.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

inline constexpr int64_t kFoldBytes = 128;
inline constexpr int64_t kRun = 16;  // elements of a lane between two joins

// The lanes of `v` moved down by `by`, going round.
template <class T>
HWY_INLINE Vec<T> rotate_down(Vec<T> v, int by) {
  using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  HWY_ALIGN I index[Vec<T>::kLanes];
  for (int i = 0; i < Vec<T>::kLanes; ++i) index[i] = static_cast<I>((i + by) % Vec<T>::kLanes);
  return {hn::TableLookupLanes(v.raw, hn::SetTableIndices(Tag<T>(), index))};
}

template <class Fn, class T>
struct ReduceLoops {
  using V = typename ValueOf<T>::type;
  static constexpr int64_t kLanes = [] {
    if constexpr (is_vec<V>)
      return V::kLanes;
    else
      return int64_t{1};
  }();
  static constexpr int64_t kAccumulators = kFoldBytes / static_cast<int64_t>(sizeof(T)) / kLanes;

  static constexpr bool kHasInit = requires { Fn::template init<V>(); };

  static void init(void* acc, int64_t n) {
    T first;
    if constexpr (is_vec<V>)
      store_first(Fn::template init<V>(), &first, 1);
    else
      first = std::bit_cast<T>(Fn::template init<V>());
    std::fill_n(static_cast<T*>(acc), n, first);
  }

  static HWY_INLINE V step(V acc, V x) { return stored(Fn::step(acc, x)); }
  static HWY_INLINE V join(V a, V b) { return stored(Fn::combine(a, b)); }
  template <class W>
  static HWY_INLINE V stored(W w) {
    if constexpr (is_vec<V>)
      return as_value(w);
    else
      return as_element<V>(w);
  }
  // Elements at p, the rest of the vector being zero.
  static HWY_INLINE V load_some(const T* p, int64_t n) {
    if constexpr (is_vec<V>)
      return n >= kLanes ? load(p) : load_first(p, n);
    else
      return *reinterpret_cast<const V*>(p);
  }

  static void inner(void* acc, const void* x, int64_t n) {
    const T* const p = static_cast<const T*>(x);
    constexpr int64_t kWidth = kAccumulators * kLanes;
    V lanes[kAccumulators];
    int64_t i = 0;
    if constexpr (kHasInit) {
      for (int64_t k = 0; k < kAccumulators; ++k) lanes[k] = Fn::template init<V>();
    } else {
      // The first elements start the lanes; where they do not fill them, one lane takes all.
      if (n < kWidth) {
        V one = load_some(p, 1);
        for (i = 1; i < n; ++i) one = step(one, load_some(p + i, 1));
        put(acc, one);
        return;
      }
      for (int64_t k = 0; k < kAccumulators; ++k) lanes[k] = load_some(p + k * kLanes, kLanes);
      i = kWidth;
    }
    if constexpr (kHasInit) {
      // A lane is itself a sum of short sums: the error of long ones would grow with their length.
      for (; i + kRun * kWidth <= n;) {
        V run[kAccumulators];
        for (int64_t k = 0; k < kAccumulators; ++k) run[k] = Fn::template init<V>();
        for (const int64_t end = i + kRun * kWidth; i < end; i += kWidth) {
          for (int64_t k = 0; k < kAccumulators; ++k)
            run[k] = step(run[k], load_some(p + i + k * kLanes, kLanes));
        }
        for (int64_t k = 0; k < kAccumulators; ++k) lanes[k] = join(lanes[k], run[k]);
      }
    }
    for (; i + kWidth <= n; i += kWidth) {
      for (int64_t k = 0; k < kAccumulators; ++k)
        lanes[k] = step(lanes[k], load_some(p + i + k * kLanes, kLanes));
    }
    for (int64_t k = 0; i < n; ++k, i += kLanes) {
      V stepped = step(lanes[k], load_some(p + i, n - i));
      if constexpr (is_vec<V>) {
        if (n - i < kLanes)
          stepped =
              where(Mask<T>{hn::FirstN(Tag<T>(), static_cast<size_t>(n - i))}, stepped, lanes[k]);
      }
      lanes[k] = stepped;
    }
    for (int64_t half = kAccumulators / 2; half > 0; half /= 2) {
      for (int64_t k = 0; k < half; ++k) lanes[k] = join(lanes[k], lanes[k + half]);
    }
    if constexpr (is_vec<V>) {
      for (int half = kLanes / 2; half > 0; half /= 2)
        lanes[0] = join(lanes[0], rotate_down(lanes[0], half));
    }
    put(acc, lanes[0]);
  }
  static HWY_INLINE void put(void* acc, V v) {
    if constexpr (is_vec<V>)
      store_first(v, static_cast<T*>(acc), 1);
    else
      *static_cast<V*>(acc) = v;
  }

  // The block loop of pointwise operators, over `acc` in place.
  struct Step {
    template <class W>
    static HWY_INLINE auto eval(W acc, W x) {
      return Fn::step(acc, x);
    }
  };
  struct StepRows {
    template <class W>
    static HWY_INLINE auto eval(W acc, W a, W b, W c, W d) {
      return Fn::step(step_one(step_one(step_one(acc, a), b), c), d);
    }
    template <class W>
    static HWY_INLINE W step_one(W acc, W x) {
      const auto stepped = Fn::step(acc, x);
      if constexpr (is_vec<W>)
        return as_value(stepped);
      else
        return as_element<W>(stepped);
    }
  };
  struct Combine {
    template <class W>
    static HWY_INLINE auto eval(W a, W b) {
      return Fn::combine(a, b);
    }
  };
  struct Final {
    template <class W>
    static HWY_INLINE auto eval(W acc, W n) {
      return Fn::final(acc, n);
    }
  };
  static void outer(void* acc, const void* x, int64_t n) {
    const void* const in[] = {acc, x};
    pointwise_block<Step, T, false, 2, 0>(acc, in, nullptr, n);
  }
  static void outer_rows(void* acc, const void* const* rows, int64_t n) {
    static_assert(kRowsAtOnce == 4);
    const void* const in[] = {acc, rows[0], rows[1], rows[2], rows[3]};
    pointwise_block<StepRows, T, false, 5, 0>(acc, in, nullptr, n);
  }
  static void combine(void* acc, const void* other, int64_t n) {
    const void* const in[] = {acc, other};
    pointwise_block<Combine, T, false, 2, 0>(acc, in, nullptr, n);
  }
  static void final(void* acc, int64_t n, double count) {
    const void* const in[] = {acc};
    const Scalar scalars[] = {Scalar(count)};
    pointwise_block<Final, T, false, 1, 1>(acc, in, scalars, n);
  }

  static constexpr ReduceFunctions functions() {
    ReduceFunctions f = {nullptr, &inner, &outer, &outer_rows, &combine, &final};
    if constexpr (kHasInit) f.init = &init;
    return f;
  }
};

// NumberFn: Fn in the namespace TREADLE_NUMBERS. Ts: the types that the reduction accumulates in.
template <class Fn, class NumberFn, class... Ts>
constexpr ReduceBlocks reduce_blocks(bool widens = false) {
  ReduceBlocks blocks;
  blocks.widens = widens;
  (
      [&] {
        ReduceFunctions& f = blocks.by_dtype[static_cast<size_t>(scalar_type_of<Ts>)];
        if constexpr (is_vec<typename ValueOf<Ts>::type>)
          f = ReduceLoops<Fn, Ts>::functions();
        else
          f = TREADLE_NUMBERS::ReduceLoops<NumberFn, Ts>::functions();
      }(),
      ...);
  return blocks;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
