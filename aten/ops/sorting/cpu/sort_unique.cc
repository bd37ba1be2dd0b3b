// unique: the distinct elements of a tensor in order, the inverse index of each element, and the
// count of each.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/_unique2.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/sorting/cpu/key_sort.h"

namespace treadle::cpu {
namespace {

template <class T>
std::tuple<Tensor, Tensor, Tensor> unique_cpu(const Tensor& self, bool /*sorted*/,
                                              bool return_inverse, bool return_counts) {
  const Tensor input = aten::contiguous(self);
  const T* const from = input.data_as<T>();
  const int64_t count = input.numel();
  std::vector<int64_t> order(count);
  with_key_order<KeyType<T>>(count, [&](auto& keys) {
    for (int64_t i = 0; i < count; ++i) keys.set(i, ordered_key(from[i]));
    keys.sort();
    for (int64_t i = 0; i < count; ++i) order[i] = keys.position(i);
  });
  // The start of a run of equal elements. NaN equals nothing, itself included.
  const auto differ = [&](int64_t i) {
    return i == 0 || !(element_value(from[order[i]]) == element_value(from[order[i - 1]]));
  };
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < count; ++i) {
    if (differ(i)) starts.push_back(i);
  }
  const int64_t runs = static_cast<int64_t>(starts.size());
  starts.push_back(count);
  const Tensor values = empty_cpu({runs}, self.dtype());
  const Tensor inverse = empty_cpu(return_inverse ? self.sizes() : IntList({0}), ScalarType::Int64);
  const Tensor counts = empty_cpu({return_counts ? runs : 0}, ScalarType::Int64);
  for (int64_t run = 0; run < runs; ++run) {
    values.data_as<T>()[run] = element_value(from[order[starts[run]]]);
    if (return_counts) counts.data_as<int64_t>()[run] = starts[run + 1] - starts[run];
    if (!return_inverse) continue;
    for (int64_t i = starts[run]; i < starts[run + 1]; ++i)
      inverse.data_as<int64_t>()[order[i]] = run;
  }
  return {values, inverse, counts};
}

const auto unique_registered = register_kernels<aten::ops::_unique2, DeviceType::CPU>(
    []<class T>() { return &unique_cpu<T>; }, "unique_cpu");

}  // namespace
}  // namespace treadle::cpu
