// topk, kthvalue, median and nanmedian: the elements at given places of the
// order along a dimension, without sorting all of it.
#include "aten/ops/topk.h"
#include <algorithm>
#include <vector>

#include "aten/cpu/dim_slices.h"
#include "aten/cpu/sort_key.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/kthvalue.h"
#include "aten/ops/median.h"
#include "aten/ops/nanmedian.h"

namespace treadle::cpu {
namespace {

// The keys of one slice with their positions.
template <class T>
void load_keys(const T* slice, int64_t step, bool descending,
               std::vector<KeyAt<KeyType<T>>>& items) {
  for (size_t j = 0; j < items.size(); ++j) {
    const int64_t at = static_cast<int64_t>(j);
    items[j] = {ordered_key(slice[at * step], descending), at};
  }
}

template <class T>
void topk_cpu(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted,
              const Tensor& values, const Tensor& indices) {
  using Item = KeyAt<KeyType<T>>;
  const Tensor input = aten::contiguous(self);
  const DimSlices s = dim_slices(input.sizes(), dim);
  const T* const from = input.data_as<T>();
  T* const to = values.data_as<T>();
  int64_t* const positions = indices.data_as<int64_t>();
  if (values.numel() == 0) return;
  parallel_for(s.count(), grain_for(s.size), [&](int64_t begin, int64_t end) {
    std::vector<Item> items(s.size);
    for (int64_t i = begin; i < end; ++i) {
      const T* slice = from + (i / s.inner) * s.size * s.inner + i % s.inner;
      load_keys(slice, s.inner, largest, items);
      if (k * 64 <= s.size) {  // few of many: a heap of k is cheaper than
                               // parting the whole
        std::partial_sort(items.begin(), items.begin() + k, items.end());
      } else {
        if (k < s.size) std::nth_element(items.begin(), items.begin() + (k - 1), items.end());
        if (sorted) std::sort(items.begin(), items.begin() + k);
      }
      const int64_t first = (i / s.inner) * k * s.inner + i % s.inner;
      for (int64_t j = 0; j < k; ++j) {
        to[first + j * s.inner] = slice[items[j].at * s.inner];
        positions[first + j * s.inner] = items[j].at;
      }
    }
  });
}

// The element of each slice that has `rank(items)` others before it.
template <class T, class Rank>
void select_rank(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices,
                 Rank rank) {
  const Tensor input = aten::contiguous(self);
  const DimSlices s = dim_slices(input.sizes(), dim);
  const T* const from = input.data_as<T>();
  T* const to = values.data_as<T>();
  int64_t* const positions = indices.data_as<int64_t>();
  parallel_for(s.count(), grain_for(s.size), [&](int64_t begin, int64_t end) {
    std::vector<KeyAt<KeyType<T>>> items(s.size);
    for (int64_t i = begin; i < end; ++i) {
      const T* slice = from + (i / s.inner) * s.size * s.inner + i % s.inner;
      load_keys(slice, s.inner, false, items);
      const auto place = items.begin() + rank(items);
      std::nth_element(items.begin(), place, items.end());
      to[i] = slice[place->at * s.inner];
      positions[i] = place->at;
    }
  });
}

template <class T>
void kthvalue_cpu(const Tensor& self, int64_t k, int64_t dim, bool /*keepdim*/,
                  const Tensor& values, const Tensor& indices) {
  select_rank<T>(self, dim, values, indices, [=](const auto&) { return k - 1; });
}

template <class T>
void median_cpu(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& values,
                const Tensor& indices) {
  select_rank<T>(self, dim, values, indices, [](const auto& items) -> int64_t {
    const int64_t count = static_cast<int64_t>(items.size());
    if constexpr (is_floating_type<T>) {
      // NaN has the largest key; if there is one, the first of them is the
      // median.
      constexpr auto kNan = static_cast<KeyType<T>>(~KeyType<T>{0});
      const int64_t nans = std::count_if(items.begin(), items.end(),
                                         [](const auto& item) { return item.key == kNan; });
      if (nans > 0) return count - nans;
    }
    return (count - 1) / 2;
  });
}

template <class T>
void nanmedian_cpu(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& values,
                   const Tensor& indices) {
  select_rank<T>(self, dim, values, indices, [](const auto& items) -> int64_t {
    int64_t count = static_cast<int64_t>(items.size());
    if constexpr (is_floating_type<T>) {
      constexpr auto kNan = static_cast<KeyType<T>>(~KeyType<T>{0});
      count -= std::count_if(items.begin(), items.end(),
                             [](const auto& item) { return item.key == kNan; });
    }
    return std::max<int64_t>(0, count - 1) / 2;
  });
}

const auto topk_registered = register_kernels<aten::ops::topk, DeviceType::CPU>(
    []<class T>() { return &topk_cpu<T>; }, "topk_cpu");
const auto kthvalue_registered = register_kernels<aten::ops::kthvalue, DeviceType::CPU>(
    []<class T>() { return &kthvalue_cpu<T>; }, "kthvalue_cpu");
const auto median_registered = register_kernels<aten::ops::median_dim, DeviceType::CPU>(
    []<class T>() { return &median_cpu<T>; }, "median_cpu");
const auto nanmedian_registered = register_kernels<aten::ops::nanmedian_dim, DeviceType::CPU>(
    []<class T>() { return &nanmedian_cpu<T>; }, "nanmedian_cpu");

}  // namespace
}  // namespace treadle::cpu
