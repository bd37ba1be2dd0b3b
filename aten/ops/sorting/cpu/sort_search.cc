// searchsorted: the positions of values in sorted sequences, by bisection.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_searchsorted.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/indexing/cpu/index_plan.h"
#include "aten/ops/sorting/cpu/sort_key.h"

namespace treadle::cpu {
namespace {

// The number of the `count` entries before `key`, or before or equal to it if `right`. sorter(i) is
// the position of entry i.
template <class T, class Sorter>
int64_t place_of(const T* sequence, Sorter sorter, int64_t count, KeyType<T> key, bool right) {
  int64_t low = 0;
  while (count > 0) {
    const int64_t half = count / 2;
    const int64_t middle = low + half;
    const KeyType<T> entry = ordered_key(sequence[sorter(middle)]);
    if (right ? entry <= key : entry < key) {
      low = middle + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}

template <class T, class Index>
void search(const T* sequences, const std::optional<Entries>& sorters, int64_t length, bool shared,
            const Tensor& values, bool right, const Tensor& out) {
  const T* const from = values.data_as<T>();
  Index* const to = out.data_as<Index>();
  const int64_t per_sequence = shared ? values.numel() : values.sizes().back();
  parallel_for(values.numel(), kGrain / 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t offset = i / per_sequence * length;
      const T* const sequence = sequences + offset;
      const KeyType<T> key = ordered_key(from[i]);
      const int64_t place =
          sorters ? place_of(
                        sequence, [&](int64_t entry) { return (*sorters)[offset + entry]; }, length,
                        key, right)
                  : place_of(
                        sequence, [](int64_t entry) { return entry; }, length, key, right);
      to[i] = static_cast<Index>(place);
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
