// sort along a dimension, slice by slice, stable; and a faster sort of the values alone.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/sort.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/_sort_values.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/copy_.h"
#include "aten/ops/empty.h"
#include "aten/ops/movedim.h"
#include "aten/ops/sorting/cpu/key_sort.h"

namespace treadle::cpu {
namespace {

Tensor last(const Tensor& t, int64_t dim) { return t.dim() < 2 ? t : aten::movedim(t, dim, -1); }

// The memory that a kernel writes for `out`: rows along the last dimension. They are `out` itself
// if that is the sorted dimension.
class Rows {
 public:
  Rows(const Tensor& out, int64_t dim) : out_(last(out, dim)) {
    rows_ = out_.is_contiguous()
                ? out_
                : aten::empty(out_.sizes(), out.dtype(), std::nullopt, out.device());
  }
  template <class T>
  T* data() const {
    return rows_.data_as<T>();
  }
  void finish() const {
    if (!rows_.is_same(out_)) aten::copy_(out_, rows_);
  }

 private:
  Tensor out_, rows_;
};

template <class T>
void sort_cpu(const Tensor& self, int64_t dim, bool descending, const Tensor& values,
              const Tensor& indices) {
  if (self.numel() == 0) return;
  const Tensor input = aten::contiguous(last(self, dim));
  const int64_t size = input.dim() ? input.sizes().back() : 1;
  const Rows sorted(values, dim), places(indices, dim);
  const T* const from = input.data_as<T>();
  T* const to = sorted.data<T>();
  int64_t* const positions = places.data<int64_t>();
  parallel_for(input.numel() / size, grain_for(size), [&](int64_t begin, int64_t end) {
    with_key_order<KeyType<T>>(size, [&](auto& order) {
      for (int64_t row = begin; row < end; ++row) {
        const T* const x = from + row * size;
        for (int64_t j = 0; j < size; ++j) order.set(j, ordered_key(x[j], descending));
        order.sort();
        for (int64_t j = 0; j < size; ++j) {
          const int64_t at = order.position(j);
          to[row * size + j] = element_value(x[at]);
          positions[row * size + j] = at;
        }
      }
    });
  });
  sorted.finish();
  places.finish();
}

// Sorts keys by how often each value occurs. counts: one zero for each value of a key.
template <class Key>
void counting_sort(Key* keys, int64_t size, int64_t* counts) {
  constexpr int64_t kAtOnce = 16 / sizeof(Key);
  for (int64_t j = 0; j < size; ++j) ++counts[keys[j]];
  int64_t value = 0;
  // Most counts are small, so the first keys of a value are written without asking how many it has.
  for (int64_t left = size; left >= kAtOnce; ++value) {
    const int64_t count = counts[value];
    std::fill_n(keys, kAtOnce, static_cast<Key>(value));
    if (count > kAtOnce) std::fill_n(keys + kAtOnce, count - kAtOnce, static_cast<Key>(value));
    keys += count;
    left -= count;
  }
  for (; value < int64_t{1} << 8 * sizeof(Key); ++value)
    keys = std::fill_n(keys, counts[value], static_cast<Key>(value));
}

// Sorts keys alone.
template <class Key>
void sort_keys(Key* keys, int64_t size) {
  constexpr int64_t kCounted = 16384;  // from here on, 65,536 counts take less time than a sort
  if constexpr (sizeof(Key) == 1) {
    std::array<int64_t, 256> counts{};
    counting_sort(keys, size, counts.data());
  } else if constexpr (sizeof(Key) == 2) {
    if (size >= kCounted) {
      std::vector<int64_t> counts(size_t{1} << 16);
      counting_sort(keys, size, counts.data());
    } else {
      std::vector<uint32_t> wide(keys, keys + size);
      vector_sort(wide.data(), size);
      std::copy(wide.begin(), wide.end(), keys);
    }
  } else {
    vector_sort(keys, size);
  }
}

template <class T>
void sort_values_cpu(const Tensor& self, int64_t dim, bool descending, const Tensor& out) {
  if (self.numel() == 0) return;
  const Tensor input = aten::contiguous(last(self, dim));
  const int64_t size = input.dim() ? input.sizes().back() : 1;
  const Rows sorted(out, dim);
  parallel_for(input.numel() / size, grain_for(size), [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      vector_sort(input.data_as<T>() + begin * size, sorted.data<T>() + begin * size, end - begin,
                  size, descending);
      return;
    }
    for (int64_t row = begin; row < end; ++row) {
      const T* const from = input.data_as<T>() + row * size;
      // The keys are sorted in the memory of the values, which are as wide.
      T* const to = sorted.data<T>() + row * size;
      auto* const keys = reinterpret_cast<KeyType<T>*>(to);
      for (int64_t j = 0; j < size; ++j) keys[j] = value_key(from[j], descending);
      sort_keys(keys, size);
      for (int64_t j = 0; j < size; ++j) {
        const T value = value_of_key<T>(keys[j], descending);
        std::memcpy(&to[j], &value, sizeof(T));
      }
    }
  });
  sorted.finish();
}

const auto sort_registered = register_kernels<aten::ops::sort, DeviceType::CPU>(
    []<class T>() { return &sort_cpu<T>; }, "sort_cpu");
const auto sort_values_registered = register_kernels<aten::ops::_sort_values, DeviceType::CPU>(
    []<class T>() { return &sort_values_cpu<T>; }, "sort_values_cpu");

}  // namespace
}  // namespace treadle::cpu
