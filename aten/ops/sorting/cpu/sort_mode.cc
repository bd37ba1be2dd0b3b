// mode: the most frequent element along a dimension, and the last of its positions.
//
// Among equally frequent elements the smallest wins. Every NaN is a separate element.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <vector>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/mode.h"
#include "aten/ops/sorting/cpu/sort_key.h"
#include "aten/ops/sorting/cpu/vector_sort.h"

namespace treadle::cpu {
namespace {

// The most frequent of sorted keys, the least if there are several.
template <class Key>
Key most_frequent(const Key* sorted, int64_t count) {
  Key best = sorted[0];
  int64_t most = 1;
  // The longest run up to key i is longer than that up to key i - 1 if it ends with key i.
  for (int64_t i = 1; i < count; ++i) {
    if (sorted[i] != sorted[i - most]) continue;
    best = sorted[i];
    ++most;
  }
  return best;
}

template <class T>
void mode_cpu(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& values,
              const Tensor& indices) {
  using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr Key kNan = std::numeric_limits<KeyType<T>>::max();
  if (values.numel() == 0) return;
  const Tensor input = aten::contiguous(self);
  const DimSlices s = dim_slices(input.sizes(), dim);
  const T* const from = input.data_as<T>();
  T* const to = values.data_as<T>();
  int64_t* const positions = indices.data_as<int64_t>();
  parallel_for(s.count(), grain_for(s.size), [&](int64_t begin, int64_t end) {
    std::vector<Key> keys(static_cast<size_t>(s.size)), sorted;
    for (int64_t i = begin; i < end; ++i) {
      const T* slice = from + (i / s.inner) * s.size * s.inner + i % s.inner;
      for (int64_t j = 0; j < s.size; ++j) keys[j] = ordered_key(slice[j * s.inner]);
      sorted = keys;
      vector_sort(sorted.data(), s.size);
      // The keys of NaN are the greatest.
      const auto nans = std::is_integral_v<T> || std::is_same_v<T, bool>
                            ? sorted.end()
                            : std::lower_bound(sorted.begin(), sorted.end(), kNan);
      int64_t best = 0;
      if (nans != sorted.begin()) {
        const Key key = most_frequent(sorted.data(), nans - sorted.begin());
        best = s.size - 1 - (std::find(keys.rbegin(), keys.rend(), key) - keys.rbegin());
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
