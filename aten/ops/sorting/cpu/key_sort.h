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

#include "aten/ops/sorting/cpu/highway_sort.h"
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

// Keys of 64 bits. Where they lie so close together that the difference from the least and the
// position fit in 64 bits, these form one integer. Otherwise the integer has 128 bits.
class WideKeyOrder {
 public:
  explicit WideKeyOrder(int64_t count) : keys_(static_cast<size_t>(count)) {}
  void set(int64_t i, uint64_t key) { keys_[i] = key; }
  void sort() {
    if (keys_.empty()) return;
    const auto [least, greatest] = std::minmax_element(keys_.begin(), keys_.end());
    const uint64_t base = *least, spread = *greatest - base;
    position_bits_ = std::bit_width(keys_.size() - 1);
    is_packed_ = std::bit_width(spread) + position_bits_ <= 64;
    if (is_packed_) {
      for (size_t i = 0; i < keys_.size(); ++i) keys_[i] = (keys_[i] - base) << position_bits_ | i;
      vector_sort(keys_.data(), static_cast<int64_t>(keys_.size()));
    } else {
      pairs_.resize(keys_.size());
      for (size_t i = 0; i < keys_.size(); ++i) pairs_[i] = {.low = i, .high = keys_[i]};
      highway_sort(pairs_.data(), static_cast<int64_t>(pairs_.size()));
    }
  }
  int64_t position(int64_t i) const {
    if (!is_packed_) return static_cast<int64_t>(pairs_[i].low);
    return static_cast<int64_t>(keys_[i] & ((uint64_t{1} << position_bits_) - 1));
  }

 private:
  std::vector<uint64_t> keys_;
  std::vector<WideKey> pairs_;
  int position_bits_ = 0;
  bool is_packed_ = false;
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
