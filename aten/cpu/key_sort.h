// Sorts keys with their positions: by comparison where there are few, by digits (least significant
// first) where many.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "aten/cpu/sort_key.h"

namespace treadle::cpu {

// Each byte of a key costs a pass over the data and over 256 counts; for fewer elements than this
// comparing is faster.
template <class Key>
inline constexpr size_t kDigitSortFrom = 64 * sizeof(Key);

// Sorts `items` by key, equal keys by position; they come in with ascending positions. `spare` is
// memory to reuse.
template <class Key>
void sort_keys(std::vector<KeyAt<Key>>& items, std::vector<KeyAt<Key>>& spare) {
  if (items.size() < kDigitSortFrom<Key>) {
    std::sort(items.begin(), items.end());
    return;
  }
  constexpr int kDigits = sizeof(Key);
  std::array<std::array<size_t, 256>, kDigits> counts{};
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
