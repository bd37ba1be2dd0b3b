// A compressed sparse matrix as a strided one.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "aten/backend/cpu/element_bits.h"
#include "aten/ops/_csr_dense.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/sparse/cpu/compressed_rows.h"
#include "aten/ops/sparse/cpu/entry_rows.h"

namespace treadle::cpu {
namespace {

// For which a thread is woken.
constexpr int64_t kBytes = int64_t{1} << 19, kEntries = int64_t{1} << 16;

template <class V>
struct Places {
  V* to;
  const V* values;
  const int64_t* columns;
  int64_t width, line, step;  // how far lines lie apart, and the elements of a line
  int64_t inner;              // elements of an entry
};

// Writes entries from `first` up to `last`, of which row[0] and so on are the rows. How many
// entries a row has is seldom foreseen by a processor, so each entry has its row. Returns the first
// entry whose column is none, or `last`.
template <bool kOne, class V>
int64_t write_entries(const Places<V>& given, const int64_t* row, int64_t first, int64_t last) {
  // A copy, since the elements could be its members for all that the compiler knows.
  const Places<V> of = given;
  for (int64_t i = first; i < last; ++i) {
    const int64_t c = of.columns[i];
    if (static_cast<uint64_t>(c) >= static_cast<uint64_t>(of.width)) [[unlikely]]
      return i;
    V* const place = of.to + row[i - first] * of.line + c * of.step;
    if constexpr (kOne)
      *place = of.values[i];
    else
      std::copy_n(of.values + i * of.inner, of.inner, place);
  }
  return last;
}

template <class V>
void csr_dense_cpu(const Tensor& values, const Tensor& crow, const Tensor& col, int64_t columns,
                   bool by_rows, const Tensor& out) {
  const Tensor from = aten::contiguous(values);
  const Tensor offsets = aten::contiguous(crow), column = aten::contiguous(col);
  const int64_t lines = crow.numel() - 1, count = col.numel();
  const int64_t inner = count > 0 ? from.numel() / count : 0;
  const int64_t* const offset = offsets.data_as<int64_t>();
  const CompressedRows matrix("to_dense", offsets, column, columns);
  const auto* const value = static_cast<const V*>(from.data());
  const int64_t* const index = column.data_as<int64_t>();
  auto* const to = static_cast<V*>(out.data());
  const int64_t all = out.numel();
  matrix.require_all(lines);
  if (all == 0) return;
  // Lines lie so far apart, and their elements so far.
  const int64_t line = by_rows ? all / lines : all / (lines * columns);
  const int64_t step = by_rows ? all / (lines * columns) : all / columns;
  const Places<V> places{to, value, index, columns, line, step, inner};
  const auto kernels = simd::entry_row_kernels();
  constexpr int64_t kElements = kBytes / static_cast<int64_t>(sizeof(V));
  parallel_for(all, kElements, [&](int64_t first, int64_t last) {
    std::memset(static_cast<void*>(to + first), 0, static_cast<size_t>(last - first) * sizeof(V));
  });
  parallel_for(count, kEntries, [&](int64_t first, int64_t last) {
    constexpr int64_t kSome = 512;
    int64_t row[kSome];
    simd::EntryRows rows(offset, lines, count, first);
    for (int64_t i = first; i < last; i += kSome) {
      const int64_t end = std::min(last, i + kSome);
      matrix.require_all(lines, kernels.write_rows(rows, i, end, row));
      const int64_t done = inner == 1 ? write_entries<true>(places, row, i, end)
                                      : write_entries<false>(places, row, i, end);
      if (done < end) [[unlikely]]
        matrix.fail_columns(index + done, 1);
    }
  });
}

const auto registered = register_kernels<aten::ops::_csr_dense, DeviceType::CPU>(
    []<class T>() { return &csr_dense_cpu<bits_of<T>>; }, "csr_dense_cpu");

}  // namespace
}  // namespace treadle::cpu
