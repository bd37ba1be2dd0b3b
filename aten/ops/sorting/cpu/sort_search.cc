// searchsorted: the positions of values in sorted sequences, by bisection.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "aten/ops/_searchsorted.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/indexing/cpu/index_plan.h"
#include "aten/ops/sorting/cpu/sort_key.h"

namespace treadle::cpu {
namespace {

// place[g]: the number of the `length` entries before the key of values[g], or before or equal to
// it if `right`. entry(i) is the key of entry i. kGroup searches take their steps together, so that
// each waits for memory while the others do. No branch depends on an entry, as half of them would
// be predicted wrongly.
template <int kGroup, class T, class Entry>
void find_places(Entry entry, int64_t length, bool right, const T* values, int64_t* place) {
  using Key = KeyType<T>;
  Key key[kGroup];
  for (int g = 0; g < kGroup; ++g) {
    key[g] = ordered_key(values[g]);
    place[g] = 0;
  }
  const auto step = [&](int64_t by) {
    for (int g = 0; g < kGroup; ++g) {
      const Key e = entry(place[g] + by - 1);
      place[g] += (e < key[g]) | (right & (e == key[g])) ? by : 0;
    }
  };
  // The place is one of place[g], ..., place[g] + left.
  for (int64_t left = length; left > 1; left -= left / 2) step(left / 2);
  if (length > 0) step(1);
}

template <class T, class Index, class Entry>
void find_all(Entry entry, int64_t length, bool right, const T* values, int64_t count, Index* to) {
  constexpr int kGroup = 8;
  int64_t place[kGroup], i = 0;
  for (; i + kGroup <= count; i += kGroup) {
    find_places<kGroup>(entry, length, right, values + i, place);
    for (int g = 0; g < kGroup; ++g) to[i + g] = static_cast<Index>(place[g]);
  }
  for (; i < count; ++i) {
    find_places<1>(entry, length, right, values + i, place);
    to[i] = static_cast<Index>(place[0]);
  }
}

template <class T, class Index>
void search(const T* sequences, const std::optional<Entries>& sorters, int64_t length, bool shared,
            const Tensor& values, bool right, const Tensor& out) {
  const T* const from = values.data_as<T>();
  Index* const to = out.data_as<Index>();
  const int64_t per_sequence = shared ? values.numel() : values.sizes().back();
  parallel_for(values.numel(), kGrain / 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t number = i / per_sequence, offset = number * length;
      const int64_t count = std::min(end, (number + 1) * per_sequence) - i;
      const T* const sequence = sequences + offset;
      if (sorters) {
        const auto entry = [&](int64_t e) { return ordered_key(sequence[(*sorters)[offset + e]]); };
        find_all(entry, length, right, from + i, count, to + i);
      } else {
        const auto entry = [=](int64_t e) { return ordered_key(sequence[e]); };
        find_all(entry, length, right, from + i, count, to + i);
      }
      i += count;
    }
  });
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
  const auto run = out_int32 ? &search<T, int32_t> : &search<T, int64_t>;
  run(sequence.data_as<T>(), sorters, length, sequence.dim() == 1, values, behind, out);
}

const auto searchsorted_registered = register_kernels<aten::ops::_searchsorted, DeviceType::CPU>(
    []<class T>() { return &searchsorted_cpu<T>; }, "searchsorted_cpu");

}  // namespace
}  // namespace treadle::cpu
