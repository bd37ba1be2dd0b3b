// topk, kthvalue, median and nanmedian: the elements at given ranks along a dimension, without a
// full sort.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/topk.h"
#include <algorithm>
#include <bit>
#include <vector>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/kthvalue.h"
#include "aten/ops/median.h"
#include "aten/ops/nanmedian.h"
#include "aten/ops/sorting/cpu/sort_key.h"

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

// The elements of one slice that may be among the first k of its order: no more than a few besides
// them, if few are equal, found without branches. Part p of the slice is every parts-th key from p
// on. k of the parts have a key up to the bound, so keys beyond the bound are not among the first.
template <class T>
class Candidates {
  using Key = KeyType<T>;

 public:
  using Items = std::vector<KeyAt<Key>>;

  Candidates(int64_t size, int64_t k)
      : k_(static_cast<size_t>(k)), parts_(std::max<size_t>(16, std::bit_ceil(2 * k_))) {
    // Slices of few elements, and searches for fewer, are done before the bound is found.
    if (k < 4 || parts_ * 8 > static_cast<size_t>(size)) parts_ = 0;
    if (parts_ > 0)
      keys_.resize(static_cast<size_t>(size));
    else
      items_.resize(static_cast<size_t>(size));
  }

  // They stay until the next call.
  Items& of(const T* slice, int64_t step, bool descending) {
    if (parts_ == 0) {
      load_keys(slice, step, descending, items_);
      return items_;
    }
    for (size_t j = 0; j < keys_.size(); ++j)
      keys_[j] = ordered_key(slice[static_cast<int64_t>(j) * step], descending);
    collect(bound());
    return items_;
  }

 private:
  Key bound() {
    least_.assign(keys_.begin(), keys_.begin() + static_cast<int64_t>(parts_));
    for (size_t row = parts_; row < keys_.size(); row += parts_) {
      const size_t width = std::min(parts_, keys_.size() - row);
      for (size_t p = 0; p < width; ++p) least_[p] = std::min(least_[p], keys_[row + p]);
    }
    const auto place = least_.begin() + static_cast<int64_t>(k_ - 1);
    std::nth_element(least_.begin(), place, least_.end());
    return *place;
  }
  void collect(Key bound) {
    constexpr size_t kRun = 32;
    items_.clear();
    for (size_t run = 0; run < keys_.size(); run += kRun) {
      const size_t end = std::min(run + kRun, keys_.size());
      bool any = false;
      for (size_t j = run; j < end; ++j) any |= keys_[j] <= bound;
      if (!any) continue;
      for (size_t j = run; j < end; ++j)
        if (keys_[j] <= bound) items_.push_back({keys_[j], static_cast<int64_t>(j)});
    }
  }

  size_t k_, parts_;  // no parts: all elements are candidates
  std::vector<Key> keys_, least_;
  Items items_;
};

template <class T>
void topk_cpu(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted,
              const Tensor& values, const Tensor& indices) {
  const Tensor input = aten::contiguous(self);
  const DimSlices s = dim_slices(input.sizes(), dim);
  const T* const from = input.data_as<T>();
  T* const to = values.data_as<T>();
  int64_t* const positions = indices.data_as<int64_t>();
  if (values.numel() == 0) return;
  if (self.dim() == 0) k = 1;  // the results have one element, whatever k
  parallel_for(s.count(), grain_for(s.size), [&](int64_t begin, int64_t end) {
    Candidates<T> candidates(s.size, k);
    for (int64_t i = begin; i < end; ++i) {
      const T* slice = from + (i / s.inner) * s.size * s.inner + i % s.inner;
      auto& items = candidates.of(slice, s.inner, largest);
      const int64_t count = static_cast<int64_t>(items.size());
      if (k * 64 <= count) {  // few of many: a heap of k is cheaper than
                              // parting the whole
        std::partial_sort(items.begin(), items.begin() + k, items.end());
      } else {
        if (k < count) std::nth_element(items.begin(), items.begin() + (k - 1), items.end());
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
