// Sorts keys with their positions: by comparison where there are few, by digits (least significant
// first) where many.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "aten/cpu/sort_key.h"

namespace treadle::cpu {

// One pass of 8 bits costs about two passes over the data; below this many elements comparing is
// faster.
inline constexpr size_t kDigitSortFrom = 1024;

// Sorts `items` by key, equal keys by position; they come in with ascending positions. `spare` is
// memory to reuse.
template <class Key>
void sort_keys(std::vector<KeyAt<Key>>& items, std::vector<KeyAt<Key>>& spare) {
  if (items.size() < kDigitSortFrom) {
    std::sort(items.begin(), items.end());
    return;
  }
  constexpr int kDigits = sizeof(Key);
  std::vector<std::array<size_t, 256>> counts(kDigits);
  for (auto& c : counts) c.fill(0);
  for (const auto& item : items) {
    for (int d = 0; d < kDigits; ++d) ++counts[d][(item.key >> (8 * d)) & 255];
  }
  spare.resize(items.size());
  for (int d = 0; d < kDigits; ++d) {
    // A digit that all keys share orders nothing.
    if (counts[d][(items[0].key >> (8 * d)) & 255] == items.size()) continue;
    size_t start = 0;
    for (size_t& count : counts[d]) {
      const size_t n = count;
      count = start;
      start += n;
    }
    for (const auto& item : items) spare[counts[d][(item.key >> (8 * d)) & 255]++] = item;
    items.swap(spare);
  }
}

}  // namespace treadle::cpu
