// unique: the distinct elements of a tensor in order, the inverse index of each element, and the
// count of each.
//
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "aten/ops/_sort_values.h"
#include "aten/ops/_unique2.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/reshape.h"
#include "aten/ops/sorting/cpu/key_sort.h"

namespace treadle::cpu {
namespace {

// The starts of runs of equal elements, then `count`. NaN equals nothing, itself included.
template <class F>
std::vector<int64_t> run_starts(int64_t count, F element) {
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || !(element(i) == element(i - 1))) starts.push_back(i);
  }
  starts.push_back(count);
  return starts;
}

template <class F>
Tensor run_values(const std::vector<int64_t>& starts, ScalarType dtype, F element) {
  const int64_t runs = static_cast<int64_t>(starts.size()) - 1;
  const Tensor values = empty_cpu({runs}, dtype);
  auto* const to = values.data_as<decltype(element(0))>();
  for (int64_t run = 0; run < runs; ++run) to[run] = element(starts[run]);
  return values;
}

Tensor run_lengths(const std::vector<int64_t>& starts, bool wanted) {
  const int64_t runs = wanted ? static_cast<int64_t>(starts.size()) - 1 : 0;
  const Tensor counts = empty_cpu({runs}, ScalarType::Int64);
  for (int64_t run = 0; run < runs; ++run)
    counts.data_as<int64_t>()[run] = starts[run + 1] - starts[run];
  return counts;
}

template <class T>
std::tuple<Tensor, Tensor, Tensor> unique_cpu(const Tensor& self, bool /*sorted*/,
                                              bool return_inverse, bool return_counts) {
  const int64_t count = self.numel();
  if (!return_inverse) {  // then nobody asks where an element was
    const Tensor sorted = aten::_sort_values(aten::reshape(self, {count}), 0, false);
    const T* const from = sorted.data_as<T>();
    const auto element = [from](int64_t i) { return element_value(from[i]); };
    const std::vector<int64_t> starts = run_starts(count, element);
    return {run_values(starts, self.dtype(), element), empty_cpu({0}, ScalarType::Int64),
            run_lengths(starts, return_counts)};
  }
  const Tensor input = aten::contiguous(self);
  const T* const from = input.data_as<T>();
  std::vector<int64_t> order(count);
  with_key_order<KeyType<T>>(count, [&](auto& keys) {
    for (int64_t i = 0; i < count; ++i) keys.set(i, ordered_key(from[i]));
    keys.sort();
    for (int64_t i = 0; i < count; ++i) order[i] = keys.position(i);
  });
  const auto element = [&](int64_t i) { return element_value(from[order[i]]); };
  const std::vector<int64_t> starts = run_starts(count, element);
  const int64_t runs = static_cast<int64_t>(starts.size()) - 1;
  const Tensor inverse = empty_cpu(self.sizes(), ScalarType::Int64);
  for (int64_t run = 0; run < runs; ++run) {
    for (int64_t i = starts[run]; i < starts[run + 1]; ++i)
      inverse.data_as<int64_t>()[order[i]] = run;
  }
  return {run_values(starts, self.dtype(), element), inverse, run_lengths(starts, return_counts)};
}

const auto unique_registered = register_kernels<aten::ops::_unique2, DeviceType::CPU>(
    []<class T>() { return &unique_cpu<T>; }, "unique_cpu");

}  // namespace
}  // namespace treadle::cpu
