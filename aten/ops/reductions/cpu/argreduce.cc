// max and min along a dimension with positions, argmax and argmin.
//
// Among equal elements the first wins. The first NaN wins over all other elements.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <limits>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/argmax.h"
#include "aten/ops/argmin.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/max.h"
#include "aten/ops/min.h"
#include "aten/ops/reductions/cpu/extreme_search.h"

namespace treadle::cpu {
namespace {

struct Larger {
  template <class C>
  static bool better(C a, C b) {
    return a > b;
  }
};
struct Smaller {
  template <class C>
  static bool better(C a, C b) {
    return a < b;
  }
};

template <class C>
bool is_nan(C value) {
  return value != value;
}

template <class C>
struct Best {
  C value;
  int64_t at;
};

// Whether `a`, which comes after `b`, replaces it. Without branches, which vectors do not have.
template <class Order, class C>
bool replaces(C a, C b) {
  return Order::better(a, b) | (is_nan(a) & !is_nan(b));
}

// Contiguous elements: first the best value over several lanes, in vector code, then its position.
template <class Order, class T>
Best<compute_type<T>> best_of_run(const T* values, int64_t count) {
  using C = compute_type<T>;
  constexpr int64_t kFew = 16;
  if (count < kFew) {
    Best<C> best{static_cast<C>(element_value(values[0])), 0};
    for (int64_t i = 1; i < count; ++i) {
      const C value = static_cast<C>(element_value(values[i]));
      if (replaces<Order>(value, best.value)) best = {value, i};
    }
    return best;
  }
  if constexpr (simd::kHasExtremeSearch<T>) {
    const int64_t at = simd::position_of_extreme(values, count, std::is_same_v<Order, Larger>);
    return {static_cast<C>(element_value(values[at])), at};
  }
  constexpr int kLanes = 16;
  C best[kLanes];
  bool nan[kLanes] = {};
  for (int l = 0; l < kLanes; ++l) best[l] = static_cast<C>(element_value(values[0]));
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const C value = static_cast<C>(element_value(values[i + l]));
      best[l] = Order::better(value, best[l]) ? value : best[l];
      nan[l] |= is_nan(value);
    }
  }
  C result = best[0];
  bool any_nan = is_nan(result);
  for (int l = 0; l < kLanes; ++l) {
    if (Order::better(best[l], result)) result = best[l];
    any_nan |= nan[l];
  }
  for (; i < count; ++i) {
    const C value = static_cast<C>(element_value(values[i]));
    if (Order::better(value, result)) result = value;
    any_nan |= is_nan(value);
  }
  // The search fails if another thread has changed it since. Then any position is valid, such as
  // the last.
  int64_t at = 0;
  while (at + 1 < count && (any_nan ? !is_nan(static_cast<C>(element_value(values[at])))
                                    : static_cast<C>(element_value(values[at])) != result))
    ++at;
  return {static_cast<C>(element_value(values[at])), at};
}

// The best of each of `columns` <= kColumns columns of rows that lie `distance` elements apart; At
// holds a position.
template <class Order, class At, class T, class C>
void best_of_rows(const T* row, int64_t rows, int64_t distance, int64_t columns, C* __restrict best,
                  At* __restrict at) {
  for (int64_t k = 0; k < columns; ++k) best[k] = static_cast<C>(element_value(row[k]));
  std::fill_n(at, columns, At(0));
  for (int64_t j = 1; j < rows; ++j) {
    row += distance;
    const At here = static_cast<At>(j);
    for (int64_t k = 0; k < columns; ++k) {
      const C value = static_cast<C>(element_value(row[k]));
      const bool take = replaces<Order>(value, best[k]);
      best[k] = take ? value : best[k];
      at[k] = take ? here : at[k];
    }
  }
}

// f(number of the slice, best element) for slices that lie side by side. Short rows are searched as
// long ones, each of several of them, whose best ones are compared at the end.
template <class Order, class At, class T, class F>
void best_of_columns(const T* values, const DimSlices& s, F& f) {
  using C = compute_type<T>;
  if (s.count() == 0) return;
  const int64_t joined = std::min(s.size, std::max<int64_t>(1, kColumns / 4 / s.inner));
  if (joined == 1) {
    for_each_column_block(s, [&](int64_t o, int64_t column, int64_t columns) {
      C best[kColumns];
      At at[kColumns];
      best_of_rows<Order>(values + o * s.size * s.inner + column, s.size, s.inner, columns, best,
                          at);
      for (int64_t k = 0; k < columns; ++k)
        f(o * s.inner + column + k, Best<C>{best[k], int64_t{at[k]}});
    });
    return;
  }
  const int64_t width = joined * s.inner, rows = s.size / joined, rest = s.size % joined;
  parallel_for(s.outer, grain_for(s.size * s.inner), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const T* const from = values + o * s.size * s.inner;
      C best[kColumns];
      At at[kColumns];
      best_of_rows<Order>(from, rows, width, width, best, at);
      for (int64_t k = 0; k < s.inner; ++k) {
        Best<C> first{best[k], at[k] * joined};
        for (int64_t r = 1; r < joined; ++r) {
          const C value = best[r * s.inner + k];
          const int64_t place = at[r * s.inner + k] * joined + r;
          const bool equal = !replaces<Order>(first.value, value);
          if (replaces<Order>(value, first.value) || (equal && place < first.at))
            first = {value, place};
        }
        for (int64_t r = 0; r < rest; ++r) {
          const C value = static_cast<C>(element_value(from[rows * width + r * s.inner + k]));
          if (replaces<Order>(value, first.value)) first = {value, rows * joined + r};
        }
        f(o * s.inner + k, first);
      }
    }
  });
}

// f(number of the slice, best element) for each slice.
template <class Order, class T, class F>
void best_of_slices(const T* values, const DimSlices& s, F&& f) {
  using C = compute_type<T>;
  if (s.inner == 1) {
    for_each_slice(s, [&](int64_t first, int64_t slice) {
      f(slice, best_of_run<Order>(values + first, s.size));
    });
    return;
  }
  // Positions as wide as elements are in vectors of the same length.
  if (sizeof(C) == 4 && s.size <= std::numeric_limits<int32_t>::max())
    best_of_columns<Order, int32_t>(values, s, f);
  else
    best_of_columns<Order, int64_t>(values, s, f);
}

// The best of all elements: of fixed pieces, then of those in order.
template <class Order, class T>
int64_t best_of_all(const T* values, int64_t count) {
  using C = compute_type<T>;
  const int64_t pieces = (count + kGrain - 1) / kGrain;
  std::vector<Best<C>> best(pieces);
  parallel_chunks(pieces, [&](int64_t p) {
    const int64_t begin = p * kGrain;
    best[p] = best_of_run<Order>(values + begin, std::min(kGrain, count - begin));
    best[p].at += begin;
  });
  Best<C> result = best[0];
  for (const Best<C>& b : best) {
    if (replaces<Order>(b.value, result.value)) result = b;
  }
  return result.at;
}

template <class Order, class T>
void extreme_dim(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  const Tensor input = aten::contiguous(self);
  T* const to = values.data_as<T>();
  int64_t* const positions = indices.data_as<int64_t>();
  best_of_slices<Order>(input.data_as<T>(), dim_slices(input.sizes(), dim),
                        [&](int64_t slice, const auto& best) {
                          to[slice] = static_cast<T>(best.value);
                          positions[slice] = best.at;
                        });
}

template <class Order, class T>
void arg_extreme(const Tensor& self, std::optional<int64_t> dim, const Tensor& out) {
  const Tensor input = aten::contiguous(self);
  int64_t* const positions = out.data_as<int64_t>();
  if (!dim) {
    *positions = best_of_all<Order>(input.data_as<T>(), input.numel());
    return;
  }
  best_of_slices<Order>(input.data_as<T>(), dim_slices(input.sizes(), *dim),
                        [&](int64_t slice, const auto& best) { positions[slice] = best.at; });
}

template <class T>
void max_dim_cpu(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& values,
                 const Tensor& indices) {
  extreme_dim<Larger, T>(self, dim, values, indices);
}
template <class T>
void min_dim_cpu(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& values,
                 const Tensor& indices) {
  extreme_dim<Smaller, T>(self, dim, values, indices);
}
template <class T>
void argmax_cpu(const Tensor& self, std::optional<int64_t> dim, bool /*keepdim*/,
                const Tensor& out) {
  arg_extreme<Larger, T>(self, dim, out);
}
template <class T>
void argmin_cpu(const Tensor& self, std::optional<int64_t> dim, bool /*keepdim*/,
                const Tensor& out) {
  arg_extreme<Smaller, T>(self, dim, out);
}

const auto max_dim_registered = register_kernels<aten::ops::max_dim, DeviceType::CPU>(
    []<class T>() { return &max_dim_cpu<T>; }, "max_dim_cpu");
const auto min_dim_registered = register_kernels<aten::ops::min_dim, DeviceType::CPU>(
    []<class T>() { return &min_dim_cpu<T>; }, "min_dim_cpu");
const auto argmax_registered = register_kernels<aten::ops::argmax, DeviceType::CPU>(
    []<class T>() { return &argmax_cpu<T>; }, "argmax_cpu");
const auto argmin_registered = register_kernels<aten::ops::argmin, DeviceType::CPU>(
    []<class T>() { return &argmin_cpu<T>; }, "argmin_cpu");

}  // namespace
}  // namespace treadle::cpu
