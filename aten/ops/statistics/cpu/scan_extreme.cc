// cummax and cummin: the largest or smallest element so far along a dimension,
// and its position.
//
//   cummax([1, 3, 2, 3])  ->  values [1, 3, 3, 3], indices [0, 1, 1, 3]
//
// Among equal elements the last one wins. A NaN stays until the end, and the last NaN wins.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/cummax.h"
#include "aten/ops/cummin.h"

namespace treadle::cpu {
namespace {

struct NotSmaller {
  template <class C>
  static bool takes_over(C next, C best) {
    return (next >= best) | (next != next);
  }
};
struct NotLarger {
  template <class C>
  static bool takes_over(C next, C best) {
    return (next <= best) | (next != next);
  }
};

// A row of elements side by side.
template <class Order, class T>
void scan_row(const T* from, int64_t n, T* to, int64_t* positions) {
  using C = compute_type<T>;
  T best = element_value(from[0]);
  int64_t at = 0;
  for (int64_t j = 0; j < n; ++j) {
    const T next = element_value(from[j]);
    // A branch, because the next element would otherwise wait for this comparison.
    if (Order::takes_over(static_cast<C>(next), static_cast<C>(best))) [[unlikely]] {
      best = next;
      at = j;
    }
    to[j] = best;
    positions[j] = at;
  }
}

template <class Order, class T>
void scan_extreme(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  using C = compute_type<T>;
  if (values.numel() == 0) return;
  const Tensor input = aten::contiguous(self);
  const DimSlices s = dim_slices(input.sizes(), dim);
  const T* const from = input.data_as<T>();
  T* const to = values.data_as<T>();
  int64_t* const positions = indices.data_as<int64_t>();
  if (s.inner == 1) {
    for_each_slice(s, [&](int64_t first, int64_t) {
      scan_row<Order>(from + first, s.size, to + first, positions + first);
    });
    return;
  }
  for_each_column_block(s, [&](int64_t o, int64_t column, int64_t columns) {
    T best[kColumns];
    int64_t at[kColumns];
    for (int64_t j = 0; j < s.size; ++j) {
      const int64_t row = (o * s.size + j) * s.inner + column;
      for (int64_t k = 0; k < columns; ++k) {
        const T next = element_value(from[row + k]);
        if (j == 0 || Order::takes_over(static_cast<C>(next), static_cast<C>(best[k]))) {
          best[k] = next;
          at[k] = j;
        }
        to[row + k] = best[k];
        positions[row + k] = at[k];
      }
    }
  });
}

template <class T>
void cummax_cpu(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  scan_extreme<NotSmaller, T>(self, dim, values, indices);
}
template <class T>
void cummin_cpu(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  scan_extreme<NotLarger, T>(self, dim, values, indices);
}

const auto cummax_registered = register_kernels<aten::ops::cummax, DeviceType::CPU>(
    []<class T>() { return &cummax_cpu<T>; }, "cummax_cpu");
const auto cummin_registered = register_kernels<aten::ops::cummin, DeviceType::CPU>(
    []<class T>() { return &cummin_cpu<T>; }, "cummin_cpu");

}  // namespace
}  // namespace treadle::cpu
