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

#include <cstdint>
#include <limits>
#include <vector>

#include "aten/ops/sorting/cpu/sort_key.h"
#include "aten/ops/sorting/cpu/vector_sort.h"
#include "hwy/contrib/sort/vqsort.h"

namespace treadle::cpu {

// Keys of at most 32 bits, of at most 2^32 elements.
class NarrowKeyOrder {
 public:
  explicit NarrowKeyOrder(int64_t count) : items_(static_cast<size_t>(count)) {}
  void set(int64_t i, uint32_t key) { items_[i] = uint64_t{key} << 32 | static_cast<uint32_t>(i); }
  void sort() { vector_sort(items_.data(), static_cast<int64_t>(items_.size())); }
  uint32_t key(int64_t i) const { return static_cast<uint32_t>(items_[i] >> 32); }
  int64_t position(int64_t i) const { return static_cast<uint32_t>(items_[i]); }

 private:
  std::vector<uint64_t> items_;
};

class WideKeyOrder {
 public:
  explicit WideKeyOrder(int64_t count) : items_(static_cast<size_t>(count)) {}
  void set(int64_t i, uint64_t key) {
    items_[i].hi = key;
    items_[i].lo = static_cast<uint64_t>(i);
  }
  void sort() { sorter_(items_.data(), items_.size(), hwy::SortAscending()); }
  uint64_t key(int64_t i) const { return items_[i].hi; }
  int64_t position(int64_t i) const { return static_cast<int64_t>(items_[i].lo); }

 private:
  std::vector<hwy::uint128_t> items_;
  hwy::Sorter sorter_;
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
