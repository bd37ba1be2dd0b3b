// Sorts keys with their positions, stably, by vectors.
//
//   with_key_order<KeyType<T>>(count, [&](auto& order) {
//     for (int64_t i = 0; i < count; ++i) order.set(i, ordered_key(from[i]));
//     order.sort();
//     ... from[order.position(0)] is the least ...
//   });
//
// A key and its position form one wide integer, with the key in its high half. No two are equal, so
// the sort is stable for any algorithm, and needs no comparison function.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "aten/ops/sorting/cpu/sort_key.h"
#include "aten/ops/sorting/cpu/vector_sort.h"

namespace treadle::cpu {

// Keys of at most 32 bits, of at most 2^32 elements.
class NarrowKeyOrder {
 public:
  explicit NarrowKeyOrder(int64_t count) : items_(static_cast<size_t>(count)) {}
  void set(int64_t i, uint32_t key) { items_[i] = uint64_t{key} << 32 | static_cast<uint32_t>(i); }
  void sort() { vector_sort(items_.data(), static_cast<int64_t>(items_.size())); }
  int64_t position(int64_t i) const { return static_cast<uint32_t>(items_[i]); }

 private:
  std::vector<uint64_t> items_;
};

// Keys of 64 bits. The difference from the least key and the position form one integer. Where that
// does not fit in 64 bits, the difference loses its last bits, and keys that are then alike are
// sorted again among themselves.
class WideKeyOrder {
 public:
  explicit WideKeyOrder(int64_t count)
      : keys_(static_cast<size_t>(count)), items_(static_cast<size_t>(count)) {}
  void set(int64_t i, uint64_t key) { keys_[i] = key; }
  void sort() {
    if (keys_.size() < 2) return;
    const auto [least, greatest] = std::minmax_element(keys_.begin(), keys_.end());
    const uint64_t base = *least, spread = *greatest - base;
    position_bits_ = static_cast<int>(std::bit_width(keys_.size() - 1));
    const int lost = std::max(0, static_cast<int>(std::bit_width(spread)) + position_bits_ - 64);
    for (size_t i = 0; i < keys_.size(); ++i)
      items_[i] = (keys_[i] - base) >> lost << position_bits_ | i;
    vector_sort(items_.data(), static_cast<int64_t>(items_.size()));
    if (lost > 0) sort_alike();
  }
  int64_t position(int64_t i) const {
    return static_cast<int64_t>(items_[i] & ((uint64_t{1} << position_bits_) - 1));
  }

 private:
  uint64_t key(int64_t i) const { return keys_[position(i)]; }

  void sort_alike() {
    const int64_t count = static_cast<int64_t>(items_.size());
    for (int64_t begin = 0, end = 1; begin < count; begin = end++) {
      bool is_sorted = true;  // as equal keys are
      for (; end < count && items_[begin] >> position_bits_ == items_[end] >> position_bits_; ++end)
        is_sorted = is_sorted && key(end - 1) <= key(end);
      if (is_sorted) continue;
      WideKeyOrder order(end - begin);
      for (int64_t i = begin; i < end; ++i) order.set(i - begin, key(i));
      order.sort();
      const std::vector<uint64_t> before(items_.begin() + begin, items_.begin() + end);
      for (int64_t i = begin; i < end; ++i) items_[i] = before[order.position(i - begin)];
    }
  }

  std::vector<uint64_t> keys_, items_;
  int position_bits_ = 0;
};

// f(order), with room for `count` keys.
template <class Key, class F>
void with_key_order(int64_t count, F&& f) {
  if (sizeof(Key) <= 4 && count <= int64_t{std::numeric_limits<uint32_t>::max()}) {
    NarrowKeyOrder order(count);
    f(order);
  } else {
    WideKeyOrder order(count);
    f(order);
  }
}

}  // namespace treadle::cpu
