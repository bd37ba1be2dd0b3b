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

// The zeros of so many bytes are written, and then the entries among them, while they are in a
// near cache.
constexpr int64_t kBlock = int64_t{1} << 19;
constexpr int64_t kEntries = int64_t{1} << 16;  // for which a thread is woken

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
  const auto kernels = simd::entry_row_kernels();
  const auto write = [&](int64_t first, int64_t last) {
    // How many entries a row has is seldom foreseen by a processor, so each entry has its row.
    constexpr int64_t kSome = 512;
    int64_t row[kSome];
    simd::EntryRows rows(offset, lines, count, first);
    for (int64_t i = first; i < last; i += kSome) {
      const int64_t end = std::min(last, i + kSome);
      matrix.require_all(lines, kernels.write_rows(rows, i, end, row));
      for (int64_t k = i; k < end; ++k) {
        const int64_t c = index[k];
        if (static_cast<uint64_t>(c) >= static_cast<uint64_t>(columns)) [[unlikely]]
          matrix.fail_column(c);
        V* const place = to + row[k - i] * line + c * step;
        if (inner == 1)
          *place = value[k];
        else
          std::copy_n(value + k * inner, inner, place);
      }
    }
  };
  const auto clear = [&](int64_t first, int64_t last) {
    std::memset(static_cast<void*>(to + first), 0, static_cast<size_t>(last - first) * sizeof(V));
  };
  constexpr int64_t kElements = kBlock / static_cast<int64_t>(sizeof(V));
  if (by_rows) {
    parallel_for(lines, std::max<int64_t>(1, kElements / line), [&](int64_t first, int64_t last) {
      clear(first * line, last * line);
      const int64_t begin = offset[first], end = offset[last];
      matrix.require_all(lines, 0 <= begin && begin <= end && end <= count);
      write(begin, end);
    });
  } else {
    parallel_for(all, kElements, clear);
    parallel_for(count, kEntries, write);
  }
}

const auto registered = register_kernels<aten::ops::_csr_dense, DeviceType::CPU>(
    []<class T>() { return &csr_dense_cpu<bits_of<T>>; }, "csr_dense_cpu");

}  // namespace
}  // namespace treadle::cpu
