// Conversions of the indices of sparse tensors: entries in order and without repetition, offsets of
// rows, transposition.
//
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "aten/ops/_coo_groups.h"
#include "aten/ops/_csr_transposed.h"
#include "aten/ops/_row_offsets.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/sparse/cpu/compressed_rows.h"
#include "core/base/checked.h"

namespace treadle::cpu {
namespace {

// ---- entries in order ----

// The numbers 0, 1, ... in the order of their keys, which are below `limit`. Equal keys keep their
// order. A radix sort by 11 bits at a time; digits that all keys share are left out.
std::vector<int64_t> sorted_by(std::vector<uint64_t>& keys, uint64_t limit) {
  constexpr int kBits = 11;
  constexpr size_t kDigits = size_t{1} << kBits;
  const size_t count = keys.size();
  std::vector<int64_t> order(count), next(count);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::vector<uint64_t> moved(count);
  for (int shift = 0; shift < 64 && (limit >> shift) > 0; shift += kBits) {
    std::vector<size_t> starts(kDigits, 0);
    for (const uint64_t key : keys) ++starts[key >> shift & (kDigits - 1)];
    if (std::find(starts.begin(), starts.end(), count) != starts.end()) continue;
    std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), size_t{0});
    for (size_t i = 0; i < count; ++i) {
      const size_t to = starts[keys[i] >> shift & (kDigits - 1)]++;
      moved[to] = keys[i];
      next[to] = order[i];
    }
    keys.swap(moved);
    order.swap(next);
  }
  return order;
}

template <class T>
std::tuple<Tensor, Tensor> coo_groups_cpu(const Tensor& indices, IntList size) {
  const Tensor from = aten::contiguous(indices);
  const int64_t dims = from.size(0), count = from.size(1);
  check<ErrorKind::Runtime>(static_cast<int64_t>(size.size()) == dims, OpName("coalesce"),
                            "expected ", dims, " sizes, got ", size.size());
  int64_t limit = 1;
  for (const int64_t n : size) {
    check<ErrorKind::Runtime>(
        !__builtin_mul_overflow(limit, std::max<int64_t>(n, 1), &limit), OpName("coalesce"),
        "expected sparse dimensions of fewer than 2^63 places, got sizes ", size);
  }
  // The key of an entry is its place, with the sparse dimensions laid out one after another.
  std::vector<uint64_t> keys(static_cast<size_t>(count), 0);
  for (int64_t d = 0; d < dims; ++d) {
    const auto n = static_cast<uint64_t>(size[d]);
    const int64_t* const row = from.data_as<int64_t>() + d * count;
    for (int64_t i = 0; i < count; ++i) {
      const auto index = static_cast<uint64_t>(row[i]);
      check<ErrorKind::Runtime>(index < n, OpName("coalesce"), "expected indices of dimension ", d,
                                " from 0 to ", size[d] - 1, ", got ", static_cast<int64_t>(index));
      keys[i] = keys[i] * n + index;
    }
  }
  const std::vector<uint64_t> key_of = keys;
  const std::vector<int64_t> order = sorted_by(keys, static_cast<uint64_t>(limit - 1));
  const Tensor groups = empty_cpu({count}, ScalarType::Int64);
  int64_t* const group_of = groups.data_as<int64_t>();
  std::vector<uint64_t> distinct;
  distinct.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || keys[i] != keys[i - 1]) distinct.push_back(keys[i]);
    group_of[order[i]] = static_cast<int64_t>(distinct.size()) - 1;
  }
  const auto left = static_cast<int64_t>(distinct.size());
  const Tensor unique = empty_cpu({dims, left}, ScalarType::Int64);
  for (int64_t d = dims; d-- > 0;) {
    const auto n = static_cast<uint64_t>(std::max<int64_t>(size[d], 1));
    int64_t* const row = unique.data_as<int64_t>() + d * left;
    for (int64_t i = 0; i < left; ++i) {
      row[i] = static_cast<int64_t>(distinct[i] % n);
      distinct[i] /= n;
    }
  }
  return {unique, groups};
}

// ---- offsets of rows ----

template <class T>
Tensor row_offsets_cpu(const Tensor& rows, int64_t count) {
  const Tensor from = aten::contiguous(rows);
  const Tensor offsets = empty_cpu({count + 1}, ScalarType::Int64);
  int64_t* const to = offsets.data_as<int64_t>();
  const int64_t* const row = from.data_as<int64_t>();
  const int64_t entries = from.numel();
  int64_t next = 0;  // the first row whose offset is not written
  for (int64_t i = 0; i < entries; ++i) {
    const int64_t r = row[i];
    check<ErrorKind::Runtime>(r >= next - 1 && r >= 0 && r < count, OpName("to_sparse_csr"),
                              "expected rows in order from 0 to ", count - 1, ", got ", r,
                              " at entry ", i);
    while (next <= r) to[next++] = i;
  }
  while (next <= count) to[next++] = entries;
  return offsets;
}

// ---- transposition ----

// The same entries by columns: their offsets, their rows, and the number of each among those by
// rows.
template <class T>
std::tuple<Tensor, Tensor, Tensor> csr_transposed_cpu(const Tensor& crow, const Tensor& col,
                                                      int64_t columns) {
  const Tensor offsets = aten::contiguous(crow), column = aten::contiguous(col);
  const int64_t rows = offsets.numel() - 1, count = column.numel();
  const CompressedRows matrix("transpose", offsets.data_as<int64_t>(), column.data_as<int64_t>(),
                              count, columns);
  const CompressedRows::Copy all = matrix.copy(rows);
  check<ErrorKind::Runtime>(all.offsets.back() == count, OpName("transpose"),
                            "expected offsets up to ", count, ", got ", all.offsets.back());
  const Tensor ccol = empty_cpu({columns + 1}, ScalarType::Int64);
  int64_t* const ends = ccol.data_as<int64_t>();
  std::fill_n(ends, columns + 1, 0);
  for (const int64_t c : all.columns) ++ends[c + 1];
  std::partial_sum(ends, ends + columns + 1, ends);
  std::vector<int64_t> next(ends, ends + columns);
  const Tensor row = empty_cpu({count}, ScalarType::Int64);
  const Tensor order = empty_cpu({count}, ScalarType::Int64);
  int64_t *const to_row = row.data_as<int64_t>(), *const to_order = order.data_as<int64_t>();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = all.offsets[r]; i < all.offsets[r + 1]; ++i) {
      const int64_t at = next[all.columns[i]]++;
      to_row[at] = r;
      to_order[at] = i;
    }
  }
  return {ccol, row, order};
}

const auto groups_registered = register_kernels<aten::ops::_coo_groups, DeviceType::CPU>(
    []<class T>() { return &coo_groups_cpu<T>; }, "coo_groups_cpu");
const auto offsets_registered = register_kernels<aten::ops::_row_offsets, DeviceType::CPU>(
    []<class T>() { return &row_offsets_cpu<T>; }, "row_offsets_cpu");
const auto transposed_registered = register_kernels<aten::ops::_csr_transposed, DeviceType::CPU>(
    []<class T>() { return &csr_transposed_cpu<T>; }, "csr_transposed_cpu");

}  // namespace
}  // namespace treadle::cpu
