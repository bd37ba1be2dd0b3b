// sort along a dimension, slice by slice, stable.
#include "aten/ops/sort.h"
#include "aten/cpu/dim_slices.h"
#include "aten/cpu/key_sort.h"
#include "aten/ops/contiguous.h"

namespace treadle::cpu {
namespace {

template <class T>
void sort_cpu(const Tensor& self, int64_t dim, bool descending, const Tensor& values,
              const Tensor& indices) {
  using Key = KeyType<T>;
  const Tensor input = aten::contiguous(self);
  const DimSlices s = dim_slices(input.sizes(), dim);
  const T* const from = input.data_as<T>();
  T* const to = values.data_as<T>();
  int64_t* const positions = indices.data_as<int64_t>();
  if (input.numel() == 0) return;
  parallel_for(s.count(), grain_for(s.size), [&](int64_t begin, int64_t end) {
    std::vector<KeyAt<Key>> items(s.size), spare;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = (i / s.inner) * s.size * s.inner + i % s.inner;
      for (int64_t j = 0; j < s.size; ++j)
        items[j] = {ordered_key(from[first + j * s.inner], descending), j};
      sort_keys(items, spare);
      for (int64_t j = 0; j < s.size; ++j) {
        to[first + j * s.inner] = from[first + items[j].at * s.inner];
        positions[first + j * s.inner] = items[j].at;
      }
    }
  });
}

const auto sort_registered = register_kernels<aten::ops::sort, DeviceType::CPU>(
    []<class T>() { return &sort_cpu<T>; }, "sort_cpu");

}  // namespace
}  // namespace treadle::cpu
