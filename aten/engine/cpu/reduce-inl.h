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
//       reduce_blocks<sum_fn, TREADLE_NUMBERS::sum_fn, false, int64_t, float, double>();
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

// The lanes [kBy, 2 * kBy) of `v`, moved to the front; the others are of no use.
template <int kBy, class T>
HWY_INLINE Vec<T> lanes_from(Vec<T> v) {
  const Tag<T> d;
  if constexpr (kBy * sizeof(T) < 16) {
    return {hn::ShiftRightLanes<kBy>(d, v.raw)};
  } else if constexpr (kBy * 2 == Vec<T>::kLanes) {
    return {hn::ConcatUpperUpper(d, v.raw, v.raw)};
  } else {
    using I = hn::TFromD<hn::RebindToSigned<Tag<T>>>;
    HWY_ALIGN I index[Vec<T>::kLanes] = {};
    for (int i = 0; i < kBy; ++i) index[i] = static_cast<I>(i + kBy);
    return {hn::TableLookupLanes(v.raw, hn::SetTableIndices(d, index))};
  }
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
      first = first_lane(Fn::template init<V>());
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
  template <class S>
  static HWY_INLINE V load_some(const S* p, int64_t n) {
    if constexpr (!std::is_same_v<S, T>) {
      const hn::Rebind<S, Tag<T>> narrow;
      if (n >= kLanes) return {hn::PromoteTo(Tag<T>(), hn::LoadU(narrow, p))};
#if HWY_TARGET <= HWY_AVX2
      const auto counts = hn::FirstN(narrow, static_cast<size_t>(n));
      return {hn::PromoteTo(Tag<T>(), hn::MaskedLoad(counts, narrow, p))};
#else
      // MaskedLoad of this target reads the whole vector.
      S few[kLanes] = {};
      std::copy_n(p, n, few);
      return {hn::PromoteTo(Tag<T>(), hn::LoadU(narrow, few))};
#endif
    } else if constexpr (is_vec<V>) {
      return n >= kLanes ? load(p) : load_first(p, n);
    } else {
      return *reinterpret_cast<const V*>(p);
    }
  }

  static void inner(void* acc, const void* x, int64_t n, int64_t rows, int64_t distance) {
    fold_rows<T>(acc, x, n, rows, distance);
  }
  static void inner_of_float(void* acc, const void* x, int64_t n, int64_t rows, int64_t distance) {
    fold_rows<float>(acc, x, n, rows, distance);
  }
  template <class S>
  static HWY_INLINE void fold_rows(void* acc, const void* x, int64_t n, int64_t rows,
                                   int64_t distance) {
    const char* row = static_cast<const char*>(x);
    T* to = static_cast<T*>(acc);
    for (int64_t r = 0; r < rows; ++r, row += distance, ++to)
      fold(to, reinterpret_cast<const S*>(row), n);
  }
  // Elements of type S, which are converted as they are loaded.
  template <class S>
  static HWY_INLINE void fold(void* acc, const S* p, int64_t n) {
    constexpr int64_t kWidth = kAccumulators * kLanes;
    // Integers are exact in any order. Few of them are folded one by one, as are those that do not
    // fill the lanes, which are in memory: a lane is not read soon after it was written alone.
    constexpr bool kAnyOrder = std::is_integral_v<T> && kHasInit;
    if constexpr (kAnyOrder) {
      if (n < 4 * kWidth) return put(acc, fold_in_order(Fn::template init<V>(), p, n));
    }
    V lanes[kAccumulators];
    int64_t i = 0;
    if constexpr (kHasInit) {
      for (int64_t k = 0; k < kAccumulators; ++k) lanes[k] = Fn::template init<V>();
    } else {
      // The first elements start the lanes. Where they do not fill them, the lanes are all.
      if (n < kWidth) return put(acc, fold_few(p, n));
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
    if constexpr (is_vec<V>) {
      // Unrolled, so that lanes[k] stays in a register.
#pragma GCC unroll 16
      for (int64_t k = 0; k < kAccumulators; ++k) {
        const int64_t left = n - i - k * kLanes;
        if (left <= 0) break;
        V stepped = step(lanes[k], load_some(p + i + k * kLanes, left));
        if (left < kLanes)
          stepped =
              where(Mask<T>{hn::FirstN(Tag<T>(), static_cast<size_t>(left))}, stepped, lanes[k]);
        lanes[k] = stepped;
      }
    } else if constexpr (!kAnyOrder) {
      for (int64_t k = 0; k < n - i; ++k) lanes[k] = step(lanes[k], load_some(p + i + k, 1));
    }
    for (int64_t half = kAccumulators / 2; half > 0; half /= 2) {
      for (int64_t k = 0; k < half; ++k) lanes[k] = join(lanes[k], lanes[k + half]);
    }
    if constexpr (is_vec<V>)
      put(acc, join_lanes<kLanes / 2>(lanes[0]));
    else if constexpr (kAnyOrder)
      put(acc, fold_in_order(lanes[0], p + i, n - i));
    else
      put(acc, lanes[0]);
  }
  template <class S>
  static HWY_INLINE V fold_in_order(V all, const S* p, int64_t n) {
    for (int64_t k = 0; k < n; ++k) all = step(all, load_some(p + k, 1));
    return all;
  }
  template <int kHalf>
  static HWY_INLINE V join_lanes(V v) {
    if constexpr (kHalf == 0)
      return v;
    else
      return join_lanes<kHalf / 2>(join(v, lanes_from<kHalf>(v)));
  }
  // The fold of fewer elements than there are lanes, by halves: those behind the last do not count.
  static HWY_INLINE V fold_few(const T* p, int64_t n) {
    if constexpr (is_vec<V>) {
      V lanes[kAccumulators];
      for (int64_t k = 0; k < kAccumulators && k * kLanes < n; ++k)
        lanes[k] = load_some(p + k * kLanes, n - k * kLanes);
      for (int64_t half = kAccumulators / 2; half > 0; half /= 2) {
        for (int64_t k = 0; k < half && (k + half) * kLanes < n; ++k)
          lanes[k] = join_first(lanes[k], lanes[k + half], n - (k + half) * kLanes);
      }
      return join_first_lanes<kLanes / 2>(lanes[0], n);
    } else {
      V all[kAccumulators];
      for (int64_t k = 0; k < n; ++k) all[k] = load_some(p + k, 1);
      for (int64_t half = kAccumulators / 2; half > 0; half /= 2) {
        for (int64_t k = 0; k < half && k + half < n; ++k) all[k] = join(all[k], all[k + half]);
      }
      return all[0];
    }
  }
  template <int kHalf>
  static HWY_INLINE V join_first_lanes(V v, int64_t n) {
    if constexpr (kHalf == 0)
      return v;
    else
      return join_first_lanes<kHalf / 2>(
          kHalf < n ? join_first(v, lanes_from<kHalf>(v), n - kHalf) : v, n);
  }
  // The first n lanes joined, those of `a` behind them.
  static HWY_INLINE V join_first(V a, V b, int64_t n) {
    const V joined = join(a, b);
    if (n >= kLanes) return joined;
    return where(Mask<T>{hn::FirstN(Tag<T>(), static_cast<size_t>(n))}, joined, a);
  }
  static HWY_INLINE void put(void* acc, V v) {
    if constexpr (is_vec<V>)
      *static_cast<T*>(acc) = first_lane(v);
    else
      *static_cast<V*>(acc) = v;
  }

  // The block loops of pointwise operators, over `acc` in place.
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
  static void outer(void* acc, const void* x, int64_t n, int64_t rows, int64_t distance,
                    const void* next) {
    step_rows<T>(acc, x, n, rows, distance, next);
  }
  static void outer_of_float(void* acc, const void* x, int64_t n, int64_t rows, int64_t distance,
                             const void* next) {
    step_rows<float>(acc, x, n, rows, distance, next);
  }
  // Rows of type S, which are converted as they are loaded.
  template <class S>
  static HWY_INLINE void step_rows(void* acc, const void* x, int64_t n, int64_t rows,
                                   int64_t distance, const void* next) {
    const char* row = static_cast<const char*>(x);
    if constexpr (is_vec<V>) {
      T* const to = static_cast<T*>(acc);
      constexpr int64_t kStrip = 4;  // vectors that all rows are stepped into, in registers
      int64_t i = 0;
      if (next != nullptr) {
        const char* const ahead = static_cast<const char*>(next);
        constexpr int64_t kAhead = kRowsAtOnce * kLanes * int64_t{sizeof(S)};
        for (; i + kLanes <= n; i += kLanes) {
          for (int64_t at = 0; at < kAhead; at += 64)
            __builtin_prefetch(ahead + i * kRowsAtOnce * int64_t{sizeof(S)} + at);
          step_strip<S, 1>(to + i, row + i * int64_t{sizeof(S)}, kLanes, kRowsAtOnce, distance);
        }
      }
      for (; i + kStrip * kLanes <= n; i += kStrip * kLanes)
        step_strip<S, kStrip>(to + i, row + i * int64_t{sizeof(S)}, kLanes, rows, distance);
      for (; i < n; i += kLanes) {
        step_strip<S, 1>(to + i, row + i * int64_t{sizeof(S)}, std::min<int64_t>(kLanes, n - i),
                         rows, distance);
      }
    } else {
      for (; rows >= kRowsAtOnce; rows -= kRowsAtOnce, row += kRowsAtOnce * distance) {
        static_assert(kRowsAtOnce == 4);
        const void* const in[] = {acc, row, row + distance, row + 2 * distance, row + 3 * distance};
        pointwise_block<StepRows, T, false, 5, 0>(acc, in, nullptr, n);
      }
      for (; rows > 0; --rows, row += distance) {
        const void* const in[] = {acc, row};
        pointwise_block<Step, T, false, 2, 0>(acc, in, nullptr, n);
      }
    }
  }
  // Steps the rows of kVectors vectors, of the last of which `lanes` count.
  template <class S, int64_t kVectors>
  static HWY_INLINE void step_strip(T* to, const char* row, int64_t lanes, int64_t rows,
                                    int64_t distance) {
    V sums[kVectors];
    for (int64_t k = 0; k < kVectors; ++k)
      sums[k] = load_some(to + k * kLanes, kVectors == 1 ? lanes : kLanes);
    for (int64_t r = 0; r < rows; ++r, row += distance) {
      const S* const p = reinterpret_cast<const S*>(row);
      for (int64_t k = 0; k < kVectors; ++k)
        sums[k] = step(sums[k], load_some(p + k * kLanes, kVectors == 1 ? lanes : kLanes));
    }
    for (int64_t k = 0; k < kVectors; ++k)
      store_lanes(sums[k], to + k * kLanes, kVectors == 1 ? lanes : kLanes);
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

  template <bool kWidens>
  static constexpr ReduceFunctions functions() {
    ReduceFunctions f;
    f.inner = &inner;
    f.outer = &outer;
    f.combine = &combine;
    f.final = &final;
    if constexpr (kHasInit) f.init = &init;
    if constexpr (kWidens && kHasInit && std::is_same_v<T, double>) {
      f.inner_of_float = &inner_of_float;
      f.outer_of_float = &outer_of_float;
    }
    return f;
  }
};

// NumberFn: Fn in the namespace TREADLE_NUMBERS. Ts: the types that the reduction accumulates in.
template <class Fn, class NumberFn, bool kWidens, class... Ts>
constexpr ReduceBlocks reduce_blocks() {
  ReduceBlocks blocks;
  blocks.widens = kWidens;
  (
      [&] {
        ReduceFunctions& f = blocks.by_dtype[static_cast<size_t>(scalar_type_of<Ts>)];
        if constexpr (is_vec<typename ValueOf<Ts>::type>)
          f = ReduceLoops<Fn, Ts>::template functions<kWidens>();
        else
          f = TREADLE_NUMBERS::ReduceLoops<NumberFn, Ts>::template functions<false>();
      }(),
      ...);
  return blocks;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
