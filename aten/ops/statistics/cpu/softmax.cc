// softmax, log_softmax and their gradients along a dimension.
//
//   softmax       y = e / sum(e)                 with e = exp(x - max(x))
//   log_softmax   y = x - max(x) - log(sum(e))
//
// Along the last dimension a slice is a run of elements and is processed alone (rows). Otherwise
// neighbouring slices are adjacent in memory and are processed together (columns). Sums use
// kFoldLanes lanes, whatever the width of a vector, so results do not depend on the machine's
// vectors. A slice with NaN, or whose maximum is not finite, becomes NaN.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/statistics/cpu/softmax.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <cmath>
#include <limits>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/engine/cpu/fold-inl.h"
#include "aten/scalar/math-inl.h"

#ifndef TREADLE_ATEN_CPU_SOFTMAX_TABLE
#define TREADLE_ATEN_CPU_SOFTMAX_TABLE
namespace treadle::cpu {

// The loops of one target. A block of columns has at most kColumns of them, `stride` apart from row
// to row.
template <class T>
struct SoftmaxLoops {
  void (*forward_rows)(const T* x, T* y, int64_t rows, int64_t size, bool log);
  void (*forward_columns)(const T* x, T* y, int64_t size, int64_t stride, int64_t columns,
                          bool log);
  void (*backward_rows)(const T* grad, const T* y, T* out, int64_t rows, int64_t size, bool log);
  void (*backward_columns)(const T* grad, const T* y, T* out, int64_t size, int64_t stride,
                           int64_t columns, bool log);
};

}  // namespace treadle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

template <class T>
struct SoftmaxTarget {
  using V = Vec<T>;
  static constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

  // f(i, vector of elements i, i + 1, ..., lanes that count) for n elements.
  template <class F>
  static HWY_INLINE void for_vectors(const T* x, int64_t n, F f) {
    int64_t i = 0;
    for (; i + V::kLanes <= n; i += V::kLanes) f(i, load(x + i), V::kLanes);
    if (i < n) f(i, load_first(x + i, n - i), n - i);
  }

  // The largest element, or NaN if there is a NaN or the largest is infinite.
  static HWY_INLINE T finite_max(const T* x, int64_t n) {
    HWY_ALIGN T lanes[V::kLanes];
    T result = -std::numeric_limits<T>::infinity();
    bool nan = false;
    V most = set(result);
    V odd = set(T(0));
    int64_t i = 0;
    for (; i + V::kLanes <= n; i += V::kLanes) {
      const V v = load(x + i);
      most = where(v > most, v, most);
      odd = where(v == v, odd, v);
    }
    store(most, lanes);
    for (const T lane : lanes) result = lane > result ? lane : result;
    store(odd, lanes);
    for (const T lane : lanes) nan |= lane != lane;
    for (; i < n; ++i) {
      result = x[i] > result ? x[i] : result;
      nan |= x[i] != x[i];
    }
    return nan || std::isinf(result) ? kNan : result;
  }

  static void forward_rows(const T* x, T* y, int64_t rows, int64_t size, bool log) {
    for (int64_t row = 0; row < rows; ++row, x += size, y += size) {
      const T max = finite_max(x, size);
      if (max != max) {
        std::fill(y, y + size, kNan);
        continue;
      }
      const V most = set(max);
      if (log) {
        const T sum = folded_sum<T>(
            size, [&](int64_t i, int64_t lanes) { return exp(load_lanes(x + i, lanes) - most); });
        const V shift = set(std::log(sum));
        for_vectors(x, size, [&](int64_t i, V v, int64_t lanes) {
          store_lanes(v - most - shift, y + i, lanes);
        });
      } else {
        const T sum = folded_sum<T>(size, [&](int64_t i, int64_t lanes) {
          const V e = exp(load_lanes(x + i, lanes) - most);
          store_lanes(e, y + i, lanes);
          return e;
        });
        const V total = set(sum);
        for_vectors(y, size,
                    [&](int64_t i, V v, int64_t lanes) { store_lanes(v / total, y + i, lanes); });
      }
    }
  }

  // Sums of columns: of rows of terms in runs, whose totals are doubles. Calls add(row, sums).
  template <class F>
  static HWY_INLINE void sum_columns(int64_t size, int64_t columns, T* sums, F add) {
    std::fill_n(sums, columns, T(0));
    if (size <= kFoldRun) {
      for (int64_t j = 0; j < size; ++j) add(j, sums);
      return;
    }
    HWY_ALIGN double totals[cpu::kColumns];
    std::fill_n(totals, columns, 0.0);
    for (int64_t j = 0; j < size;) {
      for (const int64_t end = std::min(size, j + kFoldRun); j < end; ++j) add(j, sums);
      for (int64_t k = 0; k < columns; ++k) totals[k] += static_cast<double>(sums[k]);
      std::fill_n(sums, columns, T(0));
    }
    for (int64_t k = 0; k < columns; ++k) sums[k] = static_cast<T>(totals[k]);
  }

  static void forward_columns(const T* x, T* y, int64_t size, int64_t stride, int64_t columns,
                              bool log) {
    HWY_ALIGN T most[cpu::kColumns];
    HWY_ALIGN T odd[cpu::kColumns];
    HWY_ALIGN T sums[cpu::kColumns];
    std::fill_n(most, columns, -std::numeric_limits<T>::infinity());
    std::fill_n(odd, columns, T(0));
    for (int64_t j = 0; j < size; ++j) {
      for_vectors(x + j * stride, columns, [&](int64_t k, V v, int64_t lanes) {
        const V m = load_lanes(most + k, lanes);
        store_lanes(where(v > m, v, m), most + k, lanes);
        store_lanes(where(v == v, load_lanes(odd + k, lanes), v), odd + k, lanes);
      });
    }
    for (int64_t k = 0; k < columns; ++k) {
      if (odd[k] != odd[k] || std::isinf(most[k])) {
        most[k] = 0;
        odd[k] = kNan;
      }
    }
    sum_columns(size, columns, sums, [&](int64_t j, T* to) HWY_ATTR {
      for_vectors(x + j * stride, columns, [&](int64_t k, V v, int64_t lanes) HWY_ATTR {
        const V e = exp(v - load_lanes(most + k, lanes));
        store_lanes(load_lanes(to + k, lanes) + e, to + k, lanes);
        if (!log) store_lanes(e, y + j * stride + k, lanes);
      });
    });
    for (int64_t k = 0; k < columns; ++k)
      sums[k] = odd[k] != odd[k] ? kNan : log ? std::log(sums[k]) : sums[k];
    for (int64_t j = 0; j < size; ++j) {
      for_vectors(log ? x + j * stride : y + j * stride, columns,
                  [&](int64_t k, V v, int64_t lanes) {
                    const V s = load_lanes(sums + k, lanes);
                    // The maximum is subtracted first: added to a large maximum, the logarithm
                    // would lose its digits.
                    const V result = log ? v - load_lanes(most + k, lanes) - s : v / s;
                    store_lanes(result, y + j * stride + k, lanes);
                  });
    }
  }

  static void backward_rows(const T* grad, const T* y, T* out, int64_t rows, int64_t size,
                            bool log) {
    for (int64_t row = 0; row < rows; ++row, grad += size, y += size, out += size) {
      const V sum = set(folded_sum<T>(size, [&](int64_t i, int64_t lanes) {
        const V g = load_lanes(grad + i, lanes);
        return log ? g : g * load_lanes(y + i, lanes);
      }));
      for_vectors(grad, size, [&](int64_t i, V g, int64_t lanes) {
        const V p = load_lanes(y + i, lanes);
        store_lanes(log ? g - exp(p) * sum : (g - sum) * p, out + i, lanes);
      });
    }
  }

  static void backward_columns(const T* grad, const T* y, T* out, int64_t size, int64_t stride,
                               int64_t columns, bool log) {
    HWY_ALIGN T sums[cpu::kColumns];
    sum_columns(size, columns, sums, [&](int64_t j, T* to) HWY_ATTR {
      for_vectors(grad + j * stride, columns, [&](int64_t k, V g, int64_t lanes) HWY_ATTR {
        const V term = log ? g : g * load_lanes(y + j * stride + k, lanes);
        store_lanes(load_lanes(to + k, lanes) + term, to + k, lanes);
      });
    });
    for (int64_t j = 0; j < size; ++j) {
      for_vectors(grad + j * stride, columns, [&](int64_t k, V g, int64_t lanes) {
        const V p = load_lanes(y + j * stride + k, lanes);
        const V sum = load_lanes(sums + k, lanes);
        store_lanes(log ? g - exp(p) * sum : (g - sum) * p, out + j * stride + k, lanes);
      });
    }
  }

  static constexpr cpu::SoftmaxLoops<T> kLoops = {&forward_rows, &forward_columns, &backward_rows,
                                                  &backward_columns};
};

const cpu::SoftmaxLoops<float>& softmax_float() { return SoftmaxTarget<float>::kLoops; }
const cpu::SoftmaxLoops<double>& softmax_double() { return SoftmaxTarget<double>::kLoops; }

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "aten/ops/_log_softmax.h"
#include "aten/ops/_log_softmax_backward_data.h"
#include "aten/ops/_softmax.h"
#include "aten/ops/_softmax_backward_data.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/copy_.h"
#include "aten/ops/to.h"

namespace treadle::simd {

HWY_EXPORT(softmax_float);
HWY_EXPORT(softmax_double);

template <class T>
static const cpu::SoftmaxLoops<T>& softmax_loops() {
  if constexpr (std::is_same_v<T, float>)
    return HWY_DYNAMIC_DISPATCH(softmax_float)();
  else
    return HWY_DYNAMIC_DISPATCH(softmax_double)();
}

}  // namespace treadle::simd

namespace treadle::cpu {
namespace {

template <class T>
void forward(const Tensor& self, int64_t dim, bool log, const Tensor& out) {
  if (out.numel() == 0) return;
  if constexpr (!std::is_same_v<T, compute_type<T>>) {
    const Tensor wide = empty_cpu(out.sizes(), ScalarType::Float32);
    forward<float>(aten::to(self, ScalarType::Float32), dim, log, wide);
    aten::copy_(out, wide);
  } else {
    const Tensor input = aten::contiguous(self);
    const DimSlices s = dim_slices(out.sizes(), dim);
    const T* const x = input.data_as<T>();
    T* const y = out.data_as<T>();
    const SoftmaxLoops<T>& loops = simd::softmax_loops<T>();
    if (s.inner == 1) {
      parallel_for(s.outer, grain_for(s.size), [&](int64_t begin, int64_t end) {
        loops.forward_rows(x + begin * s.size, y + begin * s.size, end - begin, s.size, log);
      });
      return;
    }
    for_each_column_block(s, [&](int64_t o, int64_t column, int64_t columns) {
      const int64_t first = o * s.size * s.inner + column;
      loops.forward_columns(x + first, y + first, s.size, s.inner, columns, log);
    });
  }
}

template <class T>
void backward(const Tensor& grad_output, const Tensor& output, int64_t dim, bool log,
              const Tensor& out) {
  if (out.numel() == 0) return;
  if constexpr (!std::is_same_v<T, compute_type<T>>) {
    const Tensor wide = empty_cpu(out.sizes(), ScalarType::Float32);
    backward<float>(aten::to(grad_output, ScalarType::Float32),
                    aten::to(output, ScalarType::Float32), dim, log, wide);
    aten::copy_(out, wide);
  } else {
    const Tensor gradient = aten::contiguous(grad_output);
    const Tensor result = aten::contiguous(output);
    const DimSlices s = dim_slices(out.sizes(), dim);
    const T* const g = gradient.data_as<T>();
    const T* const y = result.data_as<T>();
    T* const to = out.data_as<T>();
    const SoftmaxLoops<T>& loops = simd::softmax_loops<T>();
    if (s.inner == 1) {
      parallel_for(s.outer, grain_for(s.size), [&](int64_t begin, int64_t end) {
        const int64_t first = begin * s.size;
        loops.backward_rows(g + first, y + first, to + first, end - begin, s.size, log);
      });
      return;
    }
    for_each_column_block(s, [&](int64_t o, int64_t column, int64_t columns) {
      const int64_t first = o * s.size * s.inner + column;
      loops.backward_columns(g + first, y + first, to + first, s.size, s.inner, columns, log);
    });
  }
}

template <class T>
void softmax_cpu(const Tensor& self, int64_t dim, bool /*half_to_float*/, const Tensor& out) {
  forward<T>(self, dim, false, out);
}
template <class T>
void log_softmax_cpu(const Tensor& self, int64_t dim, bool /*half_to_float*/, const Tensor& out) {
  forward<T>(self, dim, true, out);
}
template <class T>
void softmax_backward_cpu(const Tensor& grad_output, const Tensor& output, int64_t dim,
                          ScalarType /*input_dtype*/, const Tensor& out) {
  backward<T>(grad_output, output, dim, false, out);
}
template <class T>
void log_softmax_backward_cpu(const Tensor& grad_output, const Tensor& output, int64_t dim,
                              ScalarType /*input_dtype*/, const Tensor& out) {
  backward<T>(grad_output, output, dim, true, out);
}

const auto softmax_registered = register_kernels<aten::ops::_softmax, DeviceType::CPU>(
    []<class T>() { return &softmax_cpu<T>; }, "softmax_cpu");
const auto log_softmax_registered = register_kernels<aten::ops::_log_softmax, DeviceType::CPU>(
    []<class T>() { return &log_softmax_cpu<T>; }, "log_softmax_cpu");
const auto softmax_backward_registered =
    register_kernels<aten::ops::_softmax_backward_data, DeviceType::CPU>(
        []<class T>() { return &softmax_backward_cpu<T>; }, "softmax_backward_cpu");
const auto log_softmax_backward_registered =
    register_kernels<aten::ops::_log_softmax_backward_data, DeviceType::CPU>(
        []<class T>() { return &log_softmax_backward_cpu<T>; }, "log_softmax_backward_cpu");

}  // namespace
}  // namespace treadle::cpu
#endif  // HWY_ONCE
