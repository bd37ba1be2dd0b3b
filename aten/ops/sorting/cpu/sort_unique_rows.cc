// The distinct rows of a matrix: the first occurrence of each, the inverse index of each row, and
// the count of each.
//
//   [[2, 1], [0, 0], [2, 1]]  ->  first [1, 0], inverse [1, 0, 1], counts [1,
//   2]
//
// `sorted` puts the rows in lexicographic order first; otherwise only neighbours are compared. A
// row with a NaN equals no other.
//
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/_unique_rows.h"
#include "aten/ops/clone.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/sorting/cpu/sort_key.h"

namespace treadle::cpu {
namespace {

template <class T>
std::tuple<Tensor, Tensor, Tensor> unique_rows_cpu(const Tensor& self, bool sorted) {
  // A copy, as sorting must find the same rows at each comparison, and other threads may write.
  const Tensor input =
      sorted ? aten::clone(self, MemoryFormat::Contiguous) : aten::contiguous(self);
  const int64_t rows = input.size(0), width = input.size(1);
  const T* const from = input.data_as<T>();
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), int64_t{0});
  if (sorted) {
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      for (int64_t k = 0; k < width; ++k) {
        const auto x = ordered_key(from[a * width + k]), y = ordered_key(from[b * width + k]);
        if (x != y) return x < y;
      }
      return a < b;
    });
  }
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < rows; ++i) {
    if (i == 0 || !std::equal(from + order[i] * width, from + (order[i] + 1) * width,
                              from + order[i - 1] * width, [](const T& a, const T& b) {
                                return element_value(a) == element_value(b);
                              }))
      starts.push_back(i);
  }
  const int64_t runs = static_cast<int64_t>(starts.size());
  starts.push_back(rows);
  const Tensor first = empty_cpu({runs}, ScalarType::Int64);
  const Tensor inverse = empty_cpu({rows}, ScalarType::Int64);
  const Tensor counts = empty_cpu({runs}, ScalarType::Int64);
  for (int64_t run = 0; run < runs; ++run) {
    first.data_as<int64_t>()[run] = order[starts[run]];
    counts.data_as<int64_t>()[run] = starts[run + 1] - starts[run];
    for (int64_t i = starts[run]; i < starts[run + 1]; ++i)
      inverse.data_as<int64_t>()[order[i]] = run;
  }
  return {first, inverse, counts};
}

const auto unique_rows_registered = register_kernels<aten::ops::_unique_rows, DeviceType::CPU>(
    []<class T>() { return &unique_rows_cpu<T>; }, "unique_rows_cpu");

}  // namespace
}  // namespace treadle::cpu
