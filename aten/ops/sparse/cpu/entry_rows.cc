// The rows of entries by vectors, compiled once per target.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/sparse/cpu/entry_rows.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "aten/ops/sparse/cpu/entry_rows.h"
#include "aten/scalar/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// Rows are short. So a row is written in whole steps, which the next row overwrites; how many
// entries it has is seldom foreseen by a processor, and how many steps it takes is.
constexpr int64_t kStep = 8;

bool write_rows(EntryRows& rows, int64_t first, int64_t last, int64_t* to) {
  const hn::CappedTag<int64_t, kStep> d;
  for (int64_t i = first; i < last;) {
    if (!rows.next(i)) return false;
    const int64_t end = std::min(rows.end, last);
    if (HWY_LIKELY(end + kStep <= last)) {
      const auto row = hn::Set(d, rows.row);
      for (; i < end; i += kStep)
        for (size_t k = 0; k < kStep; k += hn::MaxLanes(d))
          hn::StoreU(row, d, to + (i - first) + k);
    } else {
      std::fill(to + (i - first), to + (end - first), rows.row);
    }
    i = end;
  }
  return true;
}

int64_t write_starts(const int64_t* row, int64_t first, int64_t last, int64_t rows,
                     int64_t* starts) {
  const int64_t last_row = first == 0 ? -1 : row[first - 1];
  if (HWY_UNLIKELY(last_row < -1 || last_row >= rows)) return first;
  int64_t next = last_row + 1;  // the first row whose start is not written
  const auto begins_at = [&](int64_t i) HWY_ATTR {
    const int64_t r = row[i];
    if (HWY_UNLIKELY(r < next || r >= rows)) return r >= 0 && r == next - 1;
    do starts[next] = i;
    while (next++ < r);
    return true;
  };
  const hn::CappedTag<int64_t, kStep> d;
  constexpr int64_t kLanes = hn::MaxLanes(d), kBits = 64;
  int64_t i = first;
  if (i == 0 && i < last) {
    if (!begins_at(0)) return 0;
    ++i;
  }
  for (; i + kBits <= last; i += kBits) {
    uint64_t begins = 0;
    for (int64_t k = 0; k < kBits; k += kLanes) {
      const auto here = hn::LoadU(d, row + i + k), before = hn::LoadU(d, row + i + k - 1);
      uint8_t bits[8] = {};
      hn::StoreMaskBits(d, hn::Ne(here, before), bits);
      begins |= uint64_t{bits[0]} << k;
    }
    for (; begins != 0; begins &= begins - 1) {
      const int64_t at = i + __builtin_ctzll(begins);
      if (!begins_at(at)) return at;
    }
  }
  for (; i < last; ++i)
    if (!begins_at(i)) return i;
  return last;
}

template <class V>
HWY_INLINE uint64_t packed(int64_t row, V value) {
  return uint64_t{value} << 32 | static_cast<uint64_t>(row);
}

template <class V>
bool pack(EntryRows& rows, int64_t first, int64_t last, const V* values, uint64_t* words) {
  for (int64_t i = first; i < last;) {
    if (!rows.next(i)) return false;
    const int64_t end = std::min(rows.end, last), row = rows.row;
    uint64_t* const to = words - first;
    if (HWY_LIKELY(end + kStep <= last)) {
      for (; i < end; i += kStep)
        for (int64_t k = 0; k < kStep; ++k) to[i + k] = packed(row, values[i + k]);
    } else {
      for (; i < end; ++i) to[i] = packed(row, values[i]);
    }
    i = end;
  }
  return true;
}

template <class V>
void unpack(uint64_t* words, int64_t count, V* values) {
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t word = words[i];
    values[i] = static_cast<V>(word >> 32);
    words[i] = static_cast<uint32_t>(word);
  }
}

using Kernels = std::tuple<EntryRowKernels, PackedEntryKernels<uint8_t>,
                           PackedEntryKernels<uint16_t>, PackedEntryKernels<uint32_t>>;
const Kernels& entry_row_tables() {
  static constexpr Kernels kernels{
      EntryRowKernels{&write_rows, &write_starts},
      PackedEntryKernels<uint8_t>{&pack<uint8_t>, &unpack<uint8_t>},
      PackedEntryKernels<uint16_t>{&pack<uint16_t>, &unpack<uint16_t>},
      PackedEntryKernels<uint32_t>{&pack<uint32_t>, &unpack<uint32_t>}};
  return kernels;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(entry_row_tables);

EntryRows::EntryRows(const int64_t* offsets, int64_t rows, int64_t count, int64_t first)
    : offsets_(offsets), rows_(rows), count_(count) {
  // The row that the entry lies in. Any row where the offsets are none.
  row = std::upper_bound(offsets + 1, offsets + rows + 1, first) - (offsets + 1);
  end = 0;
  if (row >= rows) return;  // and there is no next row either
  const int64_t begin = offsets[row];
  end = offsets[row + 1];
  if (begin >= 0 && begin <= first && end >= begin && end <= count) return;
  row = rows;
  end = 0;
}

EntryRowKernels entry_row_kernels() {
  return std::get<EntryRowKernels>(HWY_DYNAMIC_DISPATCH(entry_row_tables)());
}

template <class V>
PackedEntryKernels<V> packed_entry_kernels() {
  return std::get<PackedEntryKernels<V>>(HWY_DYNAMIC_DISPATCH(entry_row_tables)());
}
template PackedEntryKernels<uint8_t> packed_entry_kernels();
template PackedEntryKernels<uint16_t> packed_entry_kernels();
template PackedEntryKernels<uint32_t> packed_entry_kernels();

}  // namespace treadle::simd
#endif  // HWY_ONCE
