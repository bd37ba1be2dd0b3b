// searchsorted: the positions of values in sorted sequences, by bisection.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "aten/ops/_searchsorted.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/indexing/cpu/index_plan.h"
#include "aten/ops/sorting/cpu/sort_key.h"

namespace treadle::cpu {
namespace {

// A search for the number of entries below `bound`, which are the first of a sequence.
template <class T>
struct Search {
  KeyType<T> bound;
  bool whole;      // whether all entries are, whatever `bound` says
  int64_t offset;  // of the sequence, among all entries
  int64_t place = 0;

  // The entries before `value`, or before or equal to it if `right`.
  Search(const T& value, bool right, int64_t at) : offset(at) {
    const KeyType<T> key = ordered_key(value);
    whole = right && key == std::numeric_limits<KeyType<T>>::max();
    bound = static_cast<KeyType<T>>(key + (right && !whole));
  }
};

// Takes the steps of several searches together, so that each waits for memory while the others do.
// No branch depends on an entry, as half of them would be predicted wrongly.
template <size_t kGroup, class T, class Entry>
void find_places(Entry entry, int64_t length, std::array<Search<T>, kGroup>& searches) {
  const auto step = [&](int64_t by) {
    for (Search<T>& s : searches) s.place += entry(s.offset, s.place + by - 1) < s.bound ? by : 0;
  };
  // The place is one of s.place, ..., s.place + left.
  for (int64_t left = length; left > 1; left -= left / 2) step(left / 2);
  if (length > 0) step(1);
  for (Search<T>& s : searches) s.place = s.whole ? length : s.place;
}

// The sequences, the values, and where the places go.
template <class T, class Index>
struct Places {
  int64_t length;
  const T* values;
  int64_t per_sequence;  // values; those of one sequence come one behind the other
  bool right;
  Index* to;

  // For the values [begin, end), where entry(offset, i) is the key of entry i of the sequence that
  // begins at `offset`.
  template <class Entry>
  void find(int64_t begin, int64_t end, Entry entry) const {
    int64_t sequence = begin / per_sequence, left = (sequence + 1) * per_sequence - begin;
    const auto next = [&](int64_t i) {
      const Search<T> search(values[i], right, sequence * length);
      if (--left == 0) {
        ++sequence;
        left = per_sequence;
      }
      return search;
    };
    const auto find_group = [&]<size_t... k>(int64_t i, std::index_sequence<k...>) {
      std::array<Search<T>, sizeof...(k)> searches{next(i + static_cast<int64_t>(k))...};
      find_places(entry, length, searches);
      ((to[i + static_cast<int64_t>(k)] = static_cast<Index>(searches[k].place)), ...);
    };
    constexpr int64_t kGroup = 8;
    int64_t i = begin;
    for (; i + kGroup <= end; i += kGroup) find_group(i, std::make_index_sequence<kGroup>());
    for (; i < end; ++i) find_group(i, std::make_index_sequence<1>());
  }
};

// The keys of all entries, in the order of the sequences.
template <class T, class Entry>
std::vector<KeyType<T>> keys_of(Entry entry, int64_t sequences, int64_t length) {
  std::vector<KeyType<T>> keys(static_cast<size_t>(sequences * length));
  parallel_for(sequences * length, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t offset = i / length * length, last = std::min(end, offset + length);
      for (; i < last; ++i) keys[i] = entry(offset, i - offset);
    }
  });
  return keys;
}

template <class T, class Index>
void search(const T* sequences, const std::optional<Entries>& sorters, int64_t entries,
            const Places<T, Index>& places, int64_t count) {
  const auto find = [&](auto entry) {
    parallel_for(count, kGrain / 16,
                 [&](int64_t begin, int64_t end) { places.find(begin, end, entry); });
  };
  // A search reads a dozen entries or so. It pays to have all keys for many searches.
  const auto find_soon = [&](auto entry) {
    if (entries == 0 || count < entries / 4) return find(entry);
    const auto keys = keys_of<T>(entry, entries / places.length, places.length);
    const KeyType<T>* const key = keys.data();
    find([key](int64_t offset, int64_t e) { return key[offset + e]; });
  };
  if (sorters) {
    find_soon([&](int64_t offset, int64_t e) {
      return ordered_key(sequences[offset + (*sorters)[offset + e]]);
    });
  } else {
    find_soon([=](int64_t offset, int64_t e) { return ordered_key(sequences[offset + e]); });
  }
}

template <class T>
void searchsorted_cpu(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                      std::optional<std::string_view> side, const Tensor& sorter,
                      const Tensor& out) {
  const Tensor sequence = aten::contiguous(sorted_sequence);
  const Tensor values = aten::contiguous(self);
  const int64_t length = sequence.sizes().back();
  std::optional<CheckedIndex> order;
  std::optional<Entries> sorters;
  if (sorter.defined()) {
    order = checked_index("searchsorted", sorter, length, out);
    sorters = order->entries();
  }
  const bool behind = right || (side && *side == "right");
  const int64_t count = values.numel();
  if (count == 0) return;
  const int64_t per_sequence = sequence.dim() == 1 ? count : values.sizes().back();
  const auto run = [&]<class Index>(Index* to) {
    const Places<T, Index> places{length, values.data_as<T>(), per_sequence, behind, to};
    search(sequence.data_as<T>(), sorters, sequence.numel(), places, count);
  };
  if (out_int32)
    run(out.data_as<int32_t>());
  else
    run(out.data_as<int64_t>());
}

const auto searchsorted_registered = register_kernels<aten::ops::_searchsorted, DeviceType::CPU>(
    []<class T>() { return &searchsorted_cpu<T>; }, "searchsorted_cpu");

}  // namespace
}  // namespace treadle::cpu
