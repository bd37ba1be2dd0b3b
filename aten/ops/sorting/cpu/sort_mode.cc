// mode: the most frequent element along a dimension, and the last of its positions.
//
// Among equally frequent elements the smallest wins. Every NaN is a separate element.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/mode.h"
#include "aten/ops/sorting/cpu/sort_key.h"

namespace treadle::cpu {
namespace {

template <class T>
void mode_cpu(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& values,
              const Tensor& indices) {
  using Item = KeyAt<KeyType<T>>;
  if (values.numel() == 0) return;
  const Tensor input = aten::contiguous(self);
  const DimSlices s = dim_slices(input.sizes(), dim);
  const T* const from = input.data_as<T>();
  T* const to = values.data_as<T>();
  int64_t* const positions = indices.data_as<int64_t>();
  parallel_for(s.count(), grain_for(s.size), [&](int64_t begin, int64_t end) {
    std::vector<Item> items(s.size);
    for (int64_t i = begin; i < end; ++i) {
      const T* slice = from + (i / s.inner) * s.size * s.inner + i % s.inner;
      for (int64_t j = 0; j < s.size; ++j) items[j] = {ordered_key(slice[j * s.inner]), j};
      std::sort(items.begin(), items.end());
      int64_t best = 0, most = 0;
      for (int64_t first = 0; first < s.size;) {
        const T value = element_value(slice[items[first].at * s.inner]);
        int64_t last = first;
        while (last + 1 < s.size && element_value(slice[items[last + 1].at * s.inner]) == value)
          ++last;
        if (last - first + 1 > most) {
          most = last - first + 1;
          best = items[last].at;
        }
        first = last + 1;
      }
      to[i] = slice[best * s.inner];
      positions[i] = best;
    }
  });
}

const auto mode_registered = register_kernels<aten::ops::mode, DeviceType::CPU>(
    []<class T>() { return &mode_cpu<T>; }, "mode_cpu");

}  // namespace
}  // namespace treadle::cpu
