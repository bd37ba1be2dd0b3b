// sort along a dimension, slice by slice, stable; and the values alone, which is quicker.
#include "aten/ops/sort.h"
#include "aten/cpu/dim_slices.h"
#include "aten/cpu/key_sort.h"
#include "aten/ops/_sort_values.h"
#include "aten/ops/contiguous.h"

namespace treadle::cpu {
namespace {

template <class T>
void sort_cpu(const Tensor& self, int64_t dim, bool descending, const Tensor& values,
              const Tensor& indices) {
  const Tensor input = aten::contiguous(self);
  const DimSlices s = dim_slices(input.sizes(), dim);
  const T* const from = input.data_as<T>();
  T* const to = values.data_as<T>();
  int64_t* const positions = indices.data_as<int64_t>();
  if (input.numel() == 0) return;
  parallel_for(s.count(), grain_for(s.size), [&](int64_t begin, int64_t end) {
    with_key_order<KeyType<T>>(s.size, [&](auto& order) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = (i / s.inner) * s.size * s.inner + i % s.inner;
        for (int64_t j = 0; j < s.size; ++j)
          order.set(j, ordered_key(from[first + j * s.inner], descending));
        order.sort();
        for (int64_t j = 0; j < s.size; ++j) {
          const int64_t at = order.position(j);
          to[first + j * s.inner] = from[first + at * s.inner];
          positions[first + j * s.inner] = at;
        }
      }
    });
  });
}

// Sorts keys alone.
template <class Key>
void sort_keys(std::vector<Key>& keys, const hwy::Sorter& sorter) {
  if constexpr (sizeof(Key) == 1) {
    std::array<int64_t, 256> counts{};
    for (const Key key : keys) ++counts[key];
    auto at = keys.begin();
    for (int value = 0; value < 256; ++value) {
      std::fill_n(at, counts[value], static_cast<Key>(value));
      at += counts[value];
    }
  } else {
    sorter(keys.data(), keys.size(), hwy::SortAscending());
  }
}

template <class T>
void sort_values_cpu(const Tensor& self, int64_t dim, bool descending, const Tensor& out) {
  const Tensor input = aten::contiguous(self);
  const DimSlices s = dim_slices(input.sizes(), dim);
  const T* const from = input.data_as<T>();
  T* const to = out.data_as<T>();
  if (input.numel() == 0) return;
  parallel_for(s.count(), grain_for(s.size), [&](int64_t begin, int64_t end) {
    std::vector<KeyType<T>> keys(static_cast<size_t>(s.size));
    const hwy::Sorter sorter;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = (i / s.inner) * s.size * s.inner + i % s.inner;
      for (int64_t j = 0; j < s.size; ++j)
        keys[j] = value_key(from[first + j * s.inner], descending);
      sort_keys(keys, sorter);
      for (int64_t j = 0; j < s.size; ++j)
        to[first + j * s.inner] = value_of_key<T>(keys[j], descending);
    }
  });
}

const auto sort_registered = register_kernels<aten::ops::sort, DeviceType::CPU>(
    []<class T>() { return &sort_cpu<T>; }, "sort_cpu");
const auto sort_values_registered = register_kernels<aten::ops::_sort_values, DeviceType::CPU>(
    []<class T>() { return &sort_values_cpu<T>; }, "sort_values_cpu");

}  // namespace
}  // namespace treadle::cpu
