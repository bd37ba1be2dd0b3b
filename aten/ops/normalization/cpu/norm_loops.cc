// Vector code of the loops of normalisations.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/normalization/cpu/norm_loops.cc"
#include "aten/backend/cpu/foreach_target.h"

#include "aten/engine/cpu/fold-inl.h"
#include "aten/ops/normalization/cpu/norm_loops.h"
#include "aten/scalar/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

template <class T>
struct NormTarget {
  using C = compute_type<T>;
  using V = Vec<C>;
  using Pair = std::array<V, 2>;

  // f(first element, how many), for n elements by whole vectors and the rest.
  template <class F>
  static HWY_INLINE void for_vectors(int64_t n, F f) {
    int64_t i = 0;
    for (; i + V::kLanes <= n; i += V::kLanes) f(i, V::kLanes);
    if (i < n) f(i, n - i);
  }

  static double sum(const T* x, int64_t n) {
    return folded_sum<C, double>(
        n, [=](int64_t i, int64_t lanes) HWY_ATTR { return load_computed(x + i, lanes); });
  }
  static double squares(const T* x, int64_t n, C about) {
    return folded_sum<C, double>(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V d = load_computed(x + i, lanes) - set(about);
      return d * d;
    });
  }
  static std::array<double, 2> dots(const T* g, const T* x, int64_t n, C about) {
    return folded_sums<C, double, 2>(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V h = load_computed(g + i, lanes);
      return Pair{h, h * (load_computed(x + i, lanes) - set(about))};
    });
  }
  static std::array<double, 2> dots_each(const T* g, const T* w, const T* x, int64_t n, C about) {
    return folded_sums<C, double, 2>(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V h = load_computed(g + i, lanes) * load_computed(w + i, lanes);
      return Pair{h, h * (load_computed(x + i, lanes) - set(about))};
    });
  }

  static void result(const T* x, T* y, int64_t n, C about, C scale, C shift) {
    for_vectors(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V d = load_computed(x + i, lanes) - set(about);
      store_computed(d * set(scale) + set(shift), y + i, lanes);
    });
  }
  static void result_each(const T* x, const T* w, const T* b, T* y, int64_t n, C about, C scale) {
    for_vectors(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V d = load_computed(x + i, lanes) - set(about);
      const V scaled = d * set(scale) * load_computed(w + i, lanes);
      store_computed(b ? scaled + load_computed(b + i, lanes) : scaled, y + i, lanes);
    });
  }
  static void gradient(const T* g, const T* x, T* gx, int64_t n, C weight, C about, C scale, C mean,
                       C slope) {
    for_vectors(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V h = load_computed(g + i, lanes) * set(weight);
      const V d = load_computed(x + i, lanes) - set(about);
      store_computed(set(scale) * (h - set(mean) - d * set(slope)), gx + i, lanes);
    });
  }
  static void gradient_each(const T* g, const T* w, const T* x, T* gx, int64_t n, C about, C scale,
                            C mean, C slope) {
    for_vectors(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V h = load_computed(g + i, lanes) * load_computed(w + i, lanes);
      const V d = load_computed(x + i, lanes) - set(about);
      store_computed(set(scale) * (h - set(mean) - d * set(slope)), gx + i, lanes);
    });
  }

  static HWY_INLINE void add_to(C* sums, V v, int64_t lanes) {
    store_lanes(load_lanes(sums, lanes) + v, sums, lanes);
  }
  // The sums of a vector of columns stay in registers while the rows pass.
  static void add(const T* x, int64_t pitch, int64_t rows, int64_t n, C* sums) {
    for_vectors(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      V sum = load_lanes(sums + i, lanes);
      for (int64_t r = 0; r < rows; ++r) sum = sum + load_computed(x + r * pitch + i, lanes);
      store_lanes(sum, sums + i, lanes);
    });
  }
  static void add_moments(const T* x, int64_t pitch, int64_t rows, int64_t n, const C* about,
                          C* sums, C* squares) {
    for_vectors(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V from = load_lanes(about + i, lanes);
      V sum = load_lanes(sums + i, lanes), square = load_lanes(squares + i, lanes);
      for (int64_t r = 0; r < rows; ++r) {
        const V d = load_computed(x + r * pitch + i, lanes) - from;
        sum = sum + d;
        square = square + d * d;
      }
      store_lanes(sum, sums + i, lanes);
      store_lanes(square, squares + i, lanes);
    });
  }
  static void add_dots(const T* g, const T* x, int64_t pitch, int64_t rows, int64_t n,
                       const C* about, C* sums, C* dots) {
    for_vectors(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V from = load_lanes(about + i, lanes);
      V sum = load_lanes(sums + i, lanes), dot = load_lanes(dots + i, lanes);
      for (int64_t r = 0; r < rows; ++r) {
        const V h = load_computed(g + r * pitch + i, lanes);
        sum = sum + h;
        dot = dot + h * (load_computed(x + r * pitch + i, lanes) - from);
      }
      store_lanes(sum, sums + i, lanes);
      store_lanes(dot, dots + i, lanes);
    });
  }
  static void add_scaled_dots(const T* g, const T* x, int64_t n, C about, C scale, C* sums,
                              C* dots) {
    for_vectors(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V h = load_computed(g + i, lanes);
      add_to(sums + i, h, lanes);
      const V d = load_computed(x + i, lanes) - set(about);
      add_to(dots + i, h * d * set(scale), lanes);
    });
  }
  static void result_columns(const T* x, T* y, int64_t n, const C* about, const C* scale,
                             const C* shift) {
    for_vectors(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V d = load_computed(x + i, lanes) - load_lanes(about + i, lanes);
      const V scaled = d * load_lanes(scale + i, lanes);
      store_computed(scaled + load_lanes(shift + i, lanes), y + i, lanes);
    });
  }
  static void gradient_columns(const T* g, const T* x, T* gx, int64_t n, const C* about,
                               const C* scale, const C* mean, const C* slope) {
    for_vectors(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V h = load_computed(g + i, lanes) - load_lanes(mean + i, lanes);
      const V d = load_computed(x + i, lanes) - load_lanes(about + i, lanes);
      store_computed(load_lanes(scale + i, lanes) * (h - d * load_lanes(slope + i, lanes)), gx + i,
                     lanes);
    });
  }

  static constexpr cpu::NormLoops<T> kLoops = {&sum,
                                               &squares,
                                               &dots,
                                               &dots_each,
                                               &result,
                                               &result_each,
                                               &gradient,
                                               &gradient_each,
                                               &add,
                                               &add_moments,
                                               &add_dots,
                                               &add_scaled_dots,
                                               &result_columns,
                                               &gradient_columns};
};

const cpu::NormLoops<float>& norm_loops_float() { return NormTarget<float>::kLoops; }
const cpu::NormLoops<double>& norm_loops_double() { return NormTarget<double>::kLoops; }
const cpu::NormLoops<Half>& norm_loops_half() { return NormTarget<Half>::kLoops; }
const cpu::NormLoops<BFloat16>& norm_loops_bfloat16() { return NormTarget<BFloat16>::kLoops; }

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(norm_loops_float);
HWY_EXPORT(norm_loops_double);
HWY_EXPORT(norm_loops_half);
HWY_EXPORT(norm_loops_bfloat16);

template <>
const cpu::NormLoops<float>& norm_loops<float>() {
  return HWY_DYNAMIC_DISPATCH(norm_loops_float)();
}
template <>
const cpu::NormLoops<double>& norm_loops<double>() {
  return HWY_DYNAMIC_DISPATCH(norm_loops_double)();
}
template <>
const cpu::NormLoops<Half>& norm_loops<Half>() {
  return HWY_DYNAMIC_DISPATCH(norm_loops_half)();
}
template <>
const cpu::NormLoops<BFloat16>& norm_loops<BFloat16>() {
  return HWY_DYNAMIC_DISPATCH(norm_loops_bfloat16)();
}

}  // namespace treadle::simd
#endif  // HWY_ONCE
